#!/usr/bin/env bash
# The .deb, unpacked into a folder: it names what it depends on, and plans and trains from there.
# Usage: package.sh path/to/build
set -eu -o pipefail
build=$(cd "$1" && pwd)
for tool in cpack dpkg-deb dpkg-shlibdeps; do
  if ! command -v "$tool" >/dev/null; then
    echo "skipped: no $tool (Debian: cmake, dpkg, dpkg-dev)"
    exit 77
  fi
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$build" && cpack -G DEB -B "$scratch/made" >"$scratch/cpack.log" 2>&1) || { cat "$scratch/cpack.log"; exit 1; }
deb=$(ls "$scratch"/made/*.deb)
depends=$(dpkg-deb -f "$deb" Depends)
for library in libtorch libsqlite3-0 libopenblas0-openmp libc6; do
  case $depends in *"$library"*) ;; *) echo "Depends lacks $library: $depends"; exit 1 ;; esac
done
dpkg-deb -x "$deb" "$scratch/root"
mayfly=$scratch/root/usr/bin/mayfly
for path in usr/bin/mayfly-train usr/share/mayfly/catalogs/default.yaml usr/share/doc/mayfly/copyright; do
  [ -e "$scratch/root/$path" ] || { echo "$path is not in the package"; exit 1; }
done
cd "$scratch"
"$mayfly" plan --profile spotdnn-resnet110 --catalog spotdnn --deadline 90m --loss 0.8 --json >plan.json
grep -q '"feasible": true' plan.json || { echo "no plan:"; cat plan.json; exit 1; }
"$mayfly" run root/usr/share/doc/mayfly/examples/count/job.yaml --workers 1 --out run -y --json >summary.json
grep -q '"end": "trained"' summary.json || { cat summary.json; exit 1; }
echo "ok: $(basename "$deb"), $(du -k "$deb" | cut -f1) kB; Depends: $depends"
