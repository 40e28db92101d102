#!/usr/bin/env bash
# readme.sh path/to/mayfly: every 'mayfly ...' line in the shell blocks of README.md and docs/*.md runs as written.
set -uo pipefail
bin=$(dirname "$(realpath "$1")")
root=$(realpath "$(dirname "$0")/..")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$root/examples" "$root/data" "$scratch"
cd "$scratch" || exit 1
export PATH="$bin:$PATH"
passed=0
failed=0
while IFS= read -r line; do
  # "# exit 3" at the end of a line says that the answer is no.
  wanted=$(sed -nE 's/.*# exit ([0-9]+)$/\1/p' <<< "$line")
  bash -c "$line" > out.txt 2> err.txt < /dev/null
  code=$?
  if [ "$code" -eq "${wanted:-0}" ]; then
    passed=$((passed + 1))
  else
    echo "exit $code: $line"
    cat err.txt
    failed=$((failed + 1))
  fi
done < <(cat "$root/README.md" "$root"/docs/*.md | awk '/^```sh/ { on = 1; next } /^```/ { on = 0 } on && /^mayfly / { print }')
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
