#!/usr/bin/env bash
# examples.sh path/to/mayfly [--rewrite]: every example prints what its expected.txt shows.
set -uo pipefail
mayfly=$(realpath "$1")
cd "$(dirname "$0")/../examples"
passed=0
failed=0
# What trains for real prints times; .ci/run looks at what `make run` says.
for run in */run.sh; do
  folder=$(dirname "$run")
  [ -e "$folder/expected.txt" ] || continue
  # The planner's own time differs from run to run, and so may the number of clusters it looked at between compilers.
  output=$(cd "$folder" && ./run.sh "$mayfly" 2> /dev/null | sed -E 's/; [0-9]+ clusters predicted in [0-9.e+-]+ ms/; N clusters predicted in N ms/')
  if [ "${2:-}" = --rewrite ]; then
    printf '%s\n' "$output" > "$folder/expected.txt"
  fi
  if diff -u "$folder/expected.txt" <(printf '%s\n' "$output"); then
    passed=$((passed + 1))
  else
    echo "examples/$folder differs"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
