#!/usr/bin/env bash
# compute-sanitizer over the small kernels by kind of fault (tests/devices/sanitizers/suite), on a
# machine with an NVIDIA GPU:
#
#   bench/watch.sh FOLDER [DEVICE]      DEVICE is cuda (default), or cpu for the tool's own watch
#
# FOLDER/table.txt  what was found, missed and told falsely, by kind, and each kernel that did not go as it should
# FOLDER/reports    evidence, FOLDER/logs what each run printed
#
# HIP's own atomic operations are left out on cuda. Kernels that never end take SECONDS_EACH (default 20) each.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: bench/watch.sh FOLDER [DEVICE]}
device=${2:-cuda}
python=${PYTHON:-python3}
mkdir -p "$out/reports" "$out/logs" "$out/specs"
out=$(cd "$out" && pwd)
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" NO_COLOR=1
cd "$root" || exit 3
reports=()
for spec in $("$python" -m tests.devices.sanitizers.suite "$out/specs"); do
  name=$(basename "$spec" .yaml)
  [ "$device" = cuda ] && [ "$name" = hip_scopes ] && continue
  "$python" -m tokitai_cli sanitize "$spec" --device "$device" --timeout "${SECONDS_EACH:-20}" \
    --out "$out/reports" --name "$name" --quiet >"$out/logs/$name.txt" 2>&1
  [ -f "$out/reports/$name.json" ] && reports+=("$out/reports/$name.json")
done
"$python" -m tests.devices.sanitizers.suite "$out/specs" "${reports[@]}" | tee "$out/table.txt"
