#!/bin/sh
# wheel.sh: the wheel is built without a network, installs into a venv, and a script trains with it, alone.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$here/../../tools/build_wheel" "$folder/dist"
/usr/bin/python3 -m venv --system-site-packages "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --no-index --no-deps "$folder"/dist/mayfly-*.whl
cd "$folder"  # nothing of the source tree is near
place=$("$folder/venv/bin/python" -c 'import mayfly; print(mayfly.__file__)')
case $place in
  "$folder"/venv/*) ;;
  *) echo "mayfly was imported from $place"; exit 1 ;;
esac
said=$(SAMPLES=500 "$folder/venv/bin/python" "$here/count.py")
[ "$said" = "ends at (500, 16) after 16" ] || { echo "the script said: $said"; exit 1; }
echo "the wheel works"
