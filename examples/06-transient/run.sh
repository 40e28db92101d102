#!/bin/sh
# run.sh path/to/mayfly
set -e
ask() {
  "$mayfly" predict --profile transient-resnet32 --catalog catalogue.yaml --steps 64000 "$@" | grep -E '^(time|cost) '
}
mayfly=$1
echo "1 K80, on demand"
ask --cluster k80=1 --server itself=1 --market on-demand
echo "4 K80, transient, transient server"
ask --cluster k80=4 --server ps-transient=1
echo "4 K80, transient, server on demand"
ask --cluster k80=4
echo "8 K80, transient, server on demand"
ask --cluster k80=8
for trace in one-lost two-lost dynamic; do
  echo
  "$mayfly" replay --profile transient-resnet32 --catalog catalogue.yaml --trace $trace.json --policy ideal --samples 8192000
done
for trace in recorded-0 recorded-1; do
  echo
  echo "$trace, USD with the server:"
  "$mayfly" replay --profile transient-resnet32 --catalog catalogue.yaml --trace $trace.json --policy ideal --json | grep '"cost_usd"'
done
