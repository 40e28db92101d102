#!/usr/bin/env bash
# run.sh path/to/mayfly: one cluster, three questions.
set -euo pipefail
mayfly=$(realpath "$1")
cd "$(dirname "$0")"
echo "# How long do 5 g3.8xlarge and 3 g3.16xlarge need to loss 0.8? (spotDNN's Table I: 2549.02 s)"
"$mayfly" predict --profile spotdnn-resnet110 --catalog spotdnn --cluster g3.8xlarge=5,g3.16xlarge=3 --loss 0.8 --predictor spotdnn
echo
echo "# The same question to mayfly's own model"
"$mayfly" predict --profile spotdnn-resnet110 --catalog spotdnn --cluster 5xg3.8xlarge,3xg3.16xlarge --loss 0.8
echo
echo "# Seven functions of 1728 MiB instead, for six epochs of MobileNet (lambdaDNN's time-out test)"
"$mayfly" predict --profile lambda-mobilenet --predictor lambda --functions 7 --memory-mib 1728 --epochs 6
echo
echo "# What if the loss curve is the one of my own training log?"
"$mayfly" predict --profile spotdnn-resnet110 --catalog spotdnn --cluster p3.2xlarge=2 --loss 1.5 --loss-log loss-log.csv
