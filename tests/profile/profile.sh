#!/usr/bin/env bash
# profile.sh path/to/mayfly: what `mayfly profile JOB.yaml` writes is read by predict, plan, replay and run as it is;
# it is found again beside its job, goes with others of the same job, and Ctrl-C leaves what there is.
set -uo pipefail
mayfly=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failed=0
# want WHAT COMMAND...: must succeed
want() {
  local what=$1
  shift
  if ! "$@" > out 2> err; then
    echo "$what failed: $*: $(tail -3 err)"
    failed=$((failed + 1))
  fi
}
has() { # has FILE JQ-LIKE PYTHON EXPRESSION over d
  /usr/bin/python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(0 if ($2) else 1)" "$1" || {
    echo "$1: not so: $2"
    failed=$((failed + 1))
  }
}
cat > job.yaml <<'YAML'
name: small
resources: {instance_type: m5.large}
objective: {epochs: 1}
elastic: {max: 2}
train:
  model: {name: mlp, hidden: [64]}
  data: {name: digits, samples: 4000}
  optimiser: {kind: sgd, rate: 0.05}
  batch: 32
YAML
want profile "$mayfly" profile job.yaml --type m5.large --for 2s -o p.json
has p.json "len(d['types']['m5.large']['batches']) == 5 and d['types']['m5.large']['basis'] == 'measured'"
has p.json "d['job']['parameters_mb'] > 0.2 and len(d['layers']['list']) == 2 and d['checkpoint']['data_mb'] > 0"
want predict "$mayfly" predict --profile p.json --cluster m5.large=2 --epochs 1
want plan "$mayfly" plan job.yaml --profile p.json --market on-demand --json
want replay "$mayfly" replay --profile p.json --trace "$here/../../examples/04-survive/weather.csv" --policy liveput --type m5.large
sed '/^name:/a profile: p.json' job.yaml > with.yaml
want run "$mayfly" run with.yaml --as m5.large=2 --out run -y
# Counted as no type of the catalogue: the whole catalogue is scaled from it.
sed '/^resources:/d' job.yaml > any.yaml
want 'plan that measures' "$mayfly" plan any.yaml --profile-for 4s --json --market on-demand --quota '*=2'
cp out plan.json
has plan.json "d['basis'] == 'scaled' and d['time_s_p90'] > d['time_s']"
touch -d '1 hour ago' any.profile.json
before=$(stat -c %Y any.profile.json)
want 'plan with the fresh profile' "$mayfly" plan any.yaml --no-profile --market on-demand --quota '*=2'
[ "$(stat -c %Y any.profile.json)" = "$before" ] || { echo "a fresh profile was taken anew"; failed=$((failed + 1)); }
echo '# changed' >> any.yaml
"$mayfly" plan any.yaml --no-profile > out 2> err && { echo "a stale profile was used"; failed=$((failed + 1)); }
want merge "$mayfly" profile --merge any.profile.json p.json -o both.json
has both.json "set(d['types']) == {'local', 'm5.large'}"
# Ctrl-C: what was measured stays.
"$mayfly" profile job.yaml --for 60s -o part.json > out 2> err &
pid=$!
for _ in $(seq 300); do
  grep -q 'samples each\|losses' err 2> /dev/null && break
  grep -c 'steps of' err 2> /dev/null | grep -q '^[2-9]' && break
  sleep 0.1
done
kill -INT "$pid"
wait "$pid"
code=$?
[ "$code" -eq 0 ] || { echo "Ctrl-C: exit code $code: $(tail -2 err)"; failed=$((failed + 1)); }
has part.json "'not everything' in ' '.join(d['origin']['notes'])"
want 'predict with a part' "$mayfly" predict --profile part.json --cluster m5.large=2 --epochs 1
[ "$failed" -eq 0 ] && echo "all passed"
exit "$((failed > 0))"
