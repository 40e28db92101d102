#!/usr/bin/env bash
# run.sh path/to/mayfly: what machines would wait for their gradients, predicted and measured.
set -euo pipefail
mayfly=$(realpath "$1")
cd "$(dirname "$0")"
echo "# BERT-large was measured on one V100 and on one RTX 3090; what do larger machines make of it?"
"$mayfly" predict --profile profile.json --catalog catalogue.yaml --market on-demand --stalls
echo
echo "# Two p3.16xlarge"
"$mayfly" predict --profile profile.json --catalog catalogue.yaml --market on-demand --stalls --cluster p3.16xlarge=2
echo
echo "# The same with what was measured on eight: 286 and 68 sequences/s"
"$mayfly" predict --profile measured.json --catalog catalogue.yaml --market on-demand --stalls --cluster lambda-8x-v100=1
"$mayfly" predict --profile measured.json --catalog catalogue.yaml --market on-demand --stalls --cluster own-8x-rtx3090=1
