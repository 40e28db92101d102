#!/bin/sh
# example.sh path/to/mayfly: examples/07-python trains to its end though a worker is killed, and every sample counts once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$here/../../examples/07-python/run.sh" "$1" "$folder/run"
jq -e '.end == "trained" and .samples == 60000 and .samples_repeated == 0 and .samples_skipped == 0 and .preemptions >= 1
       and .loss < 0.6' "$folder/run/summary.json" || { cat "$folder/run/summary.json"; tail "$folder"/run/logs/*; exit 1; }
grep -h '^accuracy 0\.[89]' "$folder"/run/logs/worker-*.log
