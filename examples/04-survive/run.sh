#!/bin/sh
# run.sh path/to/mayfly [DIR]
set -e
here=$(dirname "$0")
out=${2:-$(mktemp -d)/survive}
"$1" run "$here/job.yaml" --workers 3 --trace "$here/weather.csv" --speed 60x --out "$out" -y
