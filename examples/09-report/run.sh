#!/usr/bin/env bash
# run.sh path/to/mayfly [folder]: a plan and two weeks of weather as pages, pictures and tables.
set -euo pipefail
mayfly=$(realpath "$1")
if [ -n "${2:-}" ]; then
  mkdir -p "$2"
  cd "$2"
else
  cd "$(mktemp -d)"
  trap 'rm -rf "$PWD"' EXIT
fi
"$mayfly" plan --profile spotdnn-resnet110 --catalog spotdnn --deadline 45m --loss 0.8 -o plan.json > /dev/null
"$mayfly" report plan.json -o plan.html --svg pictures --csv tables
"$mayfly" replay --profile parcae-bert --trace gcp-v100 --policy checkpoint,reactive,liveput --json > replay.json
"$mayfly" replay --profile parcae-bert --trace gcp-v100 --policy liveput --journal liveput.jsonl > /dev/null
"$mayfly" replay --profile parcae-bert --trace gcp-v100 --policy checkpoint --journal checkpoint.jsonl > /dev/null
"$mayfly" report replay.json -o replay.html
"$mayfly" report liveput.jsonl checkpoint.jsonl -o journals.html --json | jq -r '.views[] | "\(.name): \(.samples | floor) samples, \(.preemptions) preemptions, \(.share.useful * 1000 | floor / 10) % useful"'
