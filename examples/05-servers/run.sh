#!/bin/sh
# run.sh path/to/mayfly [DIR]: trains with parameter servers and kills a worker and a server on the way.
here=$(dirname "$0")
out=${2:-$(mktemp -d)/servers}
"$1" run "$here/job.yaml" --workers 2 --out "$out" -y &
run=$!
pid() { sed -E "s/.*\"$1\":\[[^]]*\"pid\":([0-9]+)[^]]*\].*/\1/" "$out/processes.json"; }
until grep -q '"event":"committed"' "$out/journal.jsonl" 2> /dev/null || ! kill -0 "$run" 2> /dev/null; do sleep 0.1; done
sleep 1
kill -9 "$(pid workers)"
sleep 2
kill -9 "$(pid servers)"
wait "$run"
