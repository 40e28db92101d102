#!/bin/sh
# run.sh path/to/mayfly [DIR]: measures the job here, plans with what was measured, trains on machines that are played.
set -e
here=$(dirname "$0")
out=${2:-$(mktemp -d)/profiled}
mkdir -p "$out"
"$1" profile "$here/job.yaml" --type m5.large --for 8s -o "$out/profile.json"
"$1" plan "$here/job.yaml" --profile "$out/profile.json" --market on-demand -o "$out/plan.json"
sed '/^resources:/a\
profile: profile.json' "$here/job.yaml" > "$out/job.yaml"
cluster=$(/usr/bin/python3 -c 'import json, sys
print(",".join("{type}={n}".format(**line) for line in json.load(open(sys.argv[1]))["cluster"]))' "$out/plan.json")
"$1" run "$out/job.yaml" --plan "$out/plan.json" --as "$cluster" --out "$out/run" -y || [ $? -eq 4 ]
