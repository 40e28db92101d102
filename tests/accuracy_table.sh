#!/usr/bin/env bash
# accuracy_table.sh path/to/bench/accuracy [--rewrite]: the tables between the markers of docs/models.md are what it prints.
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "$0")/.."
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
"$program" > "$fresh"
if [ "${2:-}" = --rewrite ]; then
  awk -v fresh="$fresh" '/<!-- accuracy -->/ { print; while ((getline line < fresh) > 0) print line; skip = 1; next } /<!-- \/accuracy -->/ { skip = 0 } !skip' docs/models.md > docs/models.md.new
  mv docs/models.md.new docs/models.md
fi
diff <(awk '/<!-- \/accuracy -->/ { on = 0 } on; /<!-- accuracy -->/ { on = 1 }' docs/models.md) "$fresh"
echo "1 passed, 0 failed"
