#!/bin/sh
# run.sh path/to/mayfly [DIR]: trains examples/07-python/train.py on two workers and kills one of them on the way.
here=$(dirname "$0")
out=${2:-$(mktemp -d)/python}
PATH=/usr/bin:$PATH "$1" run "$here/job.yaml" --workers 2 --out "$out" -y &
run=$!
until grep -q '"event":"committed"' "$out/journal.jsonl" 2> /dev/null || ! kill -0 "$run" 2> /dev/null; do sleep 0.1; done
sleep 1
kill -9 "$(sed -E 's/.*"workers":\[[^]]*"pid":([0-9]+)[^]]*\].*/\1/' "$out/processes.json")"
wait "$run"
