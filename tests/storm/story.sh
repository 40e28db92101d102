#!/bin/sh
# story.sh STORM: the story of a seed is the same in every process, and a session that is told it does the same.
set -eu
storm=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for seed in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  "$storm" --seed $seed --story > "$folder/story"
  "$storm" --seed $seed --story > "$folder/again"
  cmp "$folder/story" "$folder/again"
  "$storm" --replay "$folder/story"
done
# What is told otherwise is answered otherwise.
sed '0,/^[0-9.e-]* begin$/s//0 pass/' "$folder/story" > "$folder/other"
if "$storm" --replay "$folder/other"; then
  echo "a story that was changed went by unseen"
  exit 1
fi
