#!/usr/bin/env bash
# Everything that is to be run on a machine with a GPU, into one folder:
#
#   bench/gpu.sh FOLDER [DEVICE]        DEVICE is cuda (default) or rocm
#
# FOLDER/reports  evidence of every op's suites, and of the sanitizer's runs
# FOLDER/logs     what each step printed
# FOLDER/figures.txt  speed, beside what it is measured against
# FOLDER/summary.txt  exit code and seconds of each step
#
# PYTHON names the interpreter. Where it lacks a package that is needed, a virtual environment is made
# in FOLDER/venv (which needs a package index). JOBS is the number of ops that run at a time.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: bench/gpu.sh FOLDER [DEVICE]}
device=${2:-cuda}
python=${PYTHON:-python3}
jobs=${JOBS:-4}
mkdir -p "$out/reports" "$out/logs"
out=$(cd "$out" && pwd)
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 NO_COLOR=1
export TOKITAI_CACHE="${TOKITAI_CACHE:-$out/cache}"
needed='import jinja2, ml_dtypes, msgspec, numpy, platformdirs, pytest, rich, typer, xdist, yaml'
if ! "$python" -c "$needed" 2>"$out/logs/packages.txt"; then
  "$python" -m venv "$out/venv" && "$out/venv/bin/python" -m pip install --quiet "$root[test]" || exit 3
  python=$out/venv/bin/python
fi
cd "$root" || exit 3
: >"$out/summary.txt"

# step NAME SECONDS COMMAND...: runs it with a limit, keeps its output, notes how it ended.
step() {
  local name=$1 limit=$2 start code
  shift 2
  start=$(date +%s.%N)
  timeout --signal=TERM --kill-after=10 "$limit" "$@" >"$out/logs/$name.txt" 2>&1
  code=$?
  printf '%-28s exit %3d  %7.1f s\n' "$name" "$code" \
    "$(echo "$(date +%s.%N) $start" | awk '{print $1 - $2}')" | tee -a "$out/summary.txt"
  return $code
}

# Cores are shared by the ops that run at a time, so that their oracles do not hinder each other.
each=$(($(nproc) / jobs > 0 ? $(nproc) / jobs : 1))
export OPENBLAS_NUM_THREADS=$each OMP_NUM_THREADS=$each

suites() {
  local op=$1 suite
  for suite in $(grep -oE '^  (quick|full|stress):' "specs/$op.yaml" | tr -d ' :'); do
    step "verify-$op-$suite" 260 "$python" -m tokitai_cli verify "$op" --device "$device" \
      --suite "$suite" --out "$out/reports" --name "$op-$suite" --quiet
  done
}

watched() {
  step "sanitize-$1" 150 "$python" -m tokitai_cli sanitize "$1" --device "$device" \
    --out "$out/reports" --name "$1-sanitize" --quiet
}

at_a_time() {
  local op running=0
  for op in specs/*.yaml; do
    op=$(basename "$op" .yaml)
    "$1" "$op" &
    running=$((running + 1))
    if ((running == jobs)); then
      wait -n
      running=$((running - 1))
    fi
  done
  wait
}

step doctor 60 "$python" -m tokitai_cli doctor
command -v nvidia-smi >/dev/null && nvidia-smi >"$out/logs/nvidia-smi.txt" 2>&1
at_a_time suites
step tests 240 "$python" -m pytest -p no:cacheprovider -n "$jobs" -m gpu tests/devices/gpu -q -rs
[ "$device" = cuda ] && at_a_time watched
unset OPENBLAS_NUM_THREADS OMP_NUM_THREADS
step figures 400 "$python" -m bench.gpu "$device"
cp "$out/logs/figures.txt" "$out/figures.txt"
cat "$out/figures.txt"
rm -rf "$out/cache" "$out/venv"
! grep -qv 'exit   0' "$out/summary.txt"
