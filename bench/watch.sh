#!/usr/bin/env bash
# compute-sanitizer over the small kernels by kind of fault (tests/devices/sanitizers/suite), on a
# machine with an NVIDIA GPU:
#
#   bench/watch.sh FOLDER [DEVICE]      DEVICE is cuda (default), or cpu for the tool's own watch
#
# FOLDER/table.txt  what was found, missed and told falsely, by kind, and each kernel that did not go as it should
# FOLDER/reports    evidence, FOLDER/logs what each run printed
#
# It may be run in parts: PART_SECONDS (default: no limit) after its start it begins nothing new and ends with 75, and the
# next call goes on where it ended. EACH (default 8) kernels are run at a time; one that never ends takes SECONDS_EACH (default 5).
# HIP's own atomic operations are left out on cuda.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: bench/watch.sh FOLDER [DEVICE]}
device=${2:-cuda}
python=${PYTHON:-python3}
mkdir -p "$out/reports" "$out/logs" "$out/specs"
out=$(cd "$out" && pwd)
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" NO_COLOR=1
cd "$root" || exit 3
while read -r spec names; do
  file=$(basename "$spec" .yaml)
  [ "$device" = cuda ] && [ "$file" = hip_scopes ] && continue
  read -ra left <<<"$names"
  while [ ${#left[@]} -gt 0 ]; do
    some=("${left[@]:0:${EACH:-8}}")
    left=("${left[@]:${#some[@]}}")
    name=$file-${some[0]}
    [ -f "$out/reports/$name.json" ] && continue
    if [ "$SECONDS" -ge "${PART_SECONDS:-1000000}" ]; then
      echo "more to run: call it again" >&2
      exit 75
    fi
    "$python" -m tokitai_cli sanitize "$spec" $(printf -- '--variant %s ' "${some[@]}") --device "$device" \
      --timeout "${SECONDS_EACH:-5}" --out "$out/reports" --name "$name" --quiet >"$out/logs/$name.txt" 2>&1 </dev/null
  done
done < <("$python" -m tests.devices.sanitizers.suite "$out/specs")
"$python" -m tests.devices.sanitizers.suite "$out/specs" "$out"/reports/*.json | tee "$out/table.txt"
