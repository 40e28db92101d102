#!/bin/sh
# run.sh path/to/mayfly
set -e
"$1" trace stats gcp-v100
echo
"$1" replay --profile parcae-bert --trace gcp-v100 --policy on-demand,checkpoint,redundant,reactive,persist,liveput
echo
"$1" replay --profile parcae-bert --trace gcp-v100 --policy liveput --pipelines uneven --spares warm
echo
"$1" replay --profile parcae-bert --trace drought --policy persist,deadline,liveput --samples 60000000 --deadline 50h
