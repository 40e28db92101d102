#!/usr/bin/env bash
# table.sh PROGRAM MARKER [--rewrite]: the tables between the markers <!-- MARKER --> of docs/models.md are what the program prints:
#   tests/table.sh build/bench/accuracy accuracy; tests/table.sh build/bench/throughput throughput --rewrite
set -euo pipefail
program=$(realpath "$1")
marker=$2
cd "$(dirname "$0")/.."
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
"$program" > "$fresh"
if [ "${3:-}" = --rewrite ]; then
  awk -v fresh="$fresh" -v begin="<!-- $marker -->" -v end="<!-- /$marker -->" '
    index($0, begin) { print; while ((getline line < fresh) > 0) print line; skip = 1; next }
    index($0, end) { skip = 0 }
    !skip' docs/models.md > docs/models.md.new
  mv docs/models.md.new docs/models.md
fi
diff <(awk -v begin="<!-- $marker -->" -v end="<!-- /$marker -->" 'index($0, end) { on = 0 } on; index($0, begin) { on = 1 }' docs/models.md) "$fresh"
echo "1 passed, 0 failed"
