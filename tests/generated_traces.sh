#!/usr/bin/env bash
# generated_traces.sh path/to/mayfly [--rewrite]: the commands of data/traces/README.md make the files beside it.
set -uo pipefail
bin=$(dirname "$(realpath "$1")")
traces=$(realpath "$(dirname "$0")/../data/traces")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PATH="$bin:$PATH"
cd "$scratch" || exit 1
while IFS= read -r line; do
  bash -c "$line" > /dev/null || echo "failed: $line"
done < <(grep '^mayfly trace generate ' "$traces/README.md")
[ "${2:-}" = --rewrite ] && cp ./*.json "$traces"
passed=0
failed=0
for name in $( (ls "$traces"; ls) | grep '\.json$' | sort -u); do
  if cmp "$name" "$traces/$name" && [ "$(stat -c %s "$name")" -lt 100000 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
