#!/usr/bin/env bash
# Batches on a machine with one or more GPUs, into one folder:
#
#   bench/gpu_batch.sh FOLDER [DEVICE]        DEVICE is cuda (default) or rocm
#
# Every spec's quick and full suite on one GPU and on all, killed in the middle and resumed, and split into two
# shards that are merged. FOLDER/logs has what each step printed, FOLDER/summary.txt how it ended.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: bench/gpu_batch.sh FOLDER [DEVICE]}
device=${2:-cuda}
python=${PYTHON:-python3}
mkdir -p "$out/logs"
out=$(cd "$out" && pwd)
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 NO_COLOR=1
export TOKITAI_CACHE="${TOKITAI_CACHE:-$out/cache}"
cd "$root" || exit 3
: >"$out/summary.txt"

case $device in
cuda) count=$(nvidia-smi -L | wc -l) ;;
*) count=$(rocminfo 2>/dev/null | grep -c 'Device Type: *GPU') ;;
esac
gpus=$(seq -s, 0 $((count > 0 ? count - 1 : 0)))
echo "$count GPUs, $(nproc) cores" | tee -a "$out/summary.txt"

# step NAME COMMAND...: keeps its output, notes exit code, seconds and the last lines of what it said.
step() {
  local name=$1 start code
  shift
  start=$(date +%s.%N)
  timeout --signal=TERM --kill-after=10 280 "$@" >"$out/logs/$name.txt" 2>&1
  code=$?
  printf '%-24s exit %3d  %7.1f s  %s\n' "$name" "$code" \
    "$(echo "$(date +%s.%N) $start" | awk '{print $1 - $2}')" \
    "$(grep -E '^batch:' "$out/logs/$name.txt" | tail -1)" | tee -a "$out/summary.txt"
}

batch=("$python" -m tokitai_cli batch specs --device "$device" --suite quick --suite full)
step warm "$python" -m tokitai_cli batch specs --device "$device" --out "$out/warm"
step one-gpu-one-worker "${batch[@]}" --gpu 0 --out "$out/one"
step one-gpu-four-workers "${batch[@]}" --gpu 0 --gpu-children 4 -j 4 --out "$out/four"
step all-gpus "${batch[@]}" --gpu "$gpus" --out "$out/all"

timeout --signal=KILL 6 "${batch[@]}" --gpu "$gpus" --out "$out/killed" >"$out/logs/killed.txt" 2>&1
python3 -c 'import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM result").fetchone())' "$out/killed/batch.sqlite3" | sed 's/^/on disk when it was killed: /' | tee -a "$out/summary.txt"
step resumed "${batch[@]}" --gpu "$gpus" --out "$out/killed" --resume
grep -E 'still fresh' "$out/logs/resumed.txt" | tee -a "$out/summary.txt"

step shard-1 "${batch[@]}" --gpu 0 --shard 1/2 --out "$out/shard-1"
step shard-2 "${batch[@]}" --gpu 0 --shard 2/2 --out "$out/shard-2"
step merged "$python" -m tokitai_cli merge "$out/shard-1" "$out/shard-2" --out "$out/merged"
# The records of every case are in the evidence; what comes back from such a machine is small then.
rm -rf "$out"/*/cases "$out/cache" "$out/one" "$out/four" "$out/shard-1" "$out/shard-2"
