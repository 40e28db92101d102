#!/usr/bin/env bash
# run.sh path/to/mayfly: plans the bundled job.
set -euo pipefail
mayfly=$(realpath "$1")
cd "$(dirname "$0")"
"$mayfly" plan job.yaml
