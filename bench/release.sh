#!/bin/sh
# release.sh DIST PYTHON...: try the wheel and the sdist of DIST as a new user has them, in an empty
# environment and an empty home of each PYTHON. Ends with 1 if one of them fails.
set -eu
dist=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")/.." && pwd)
shift

try() (  # PYTHON FILE
    home=$(mktemp -d)
    trap 'rm -rf "$home"' EXIT
    "$1" -m venv "$home/venv" || exit 1
    "$home/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$2" || exit 1
    cp "$here/docs/examples/gallery/norm/rms_norm.cu" "$home"
    cd "$home"
    for words in --version --help "verify gemm-bw --m 64 --device cpu" "new rms_norm.cu --out draft"; do
        # shellcheck disable=SC2086  # words are words
        env -i PATH="$home/venv/bin:/usr/bin:/bin" HOME="$home" LANG=C.UTF-8 tokitai $words \
            >log 2>&1 </dev/null || { echo "tokitai $words: exit $?"; cat log; exit 1; }
    done
    cp "$here/docs/examples/gallery/norm/formula.py" draft
    env -i PATH="$home/venv/bin:/usr/bin:/bin" HOME="$home" LANG=C.UTF-8 \
        tokitai verify draft/spec.yaml --suite quick --device cpu >log 2>&1 </dev/null ||
        { echo "tokitai verify draft/spec.yaml: exit $?"; cat log; exit 1; }
)

failed=0
for python in "$@"; do
    if ! command -v "$python" >/dev/null; then
        echo "$python: not on this machine"
        failed=1
        continue
    fi
    for file in "$dist"/*.whl "$dist"/*.tar.gz; do
        if try "$python" "$file"; then
            echo "$python: $(basename "$file") works"
        else
            echo "$python: $(basename "$file") FAILS"
            failed=1
        fi
    done
done
exit $failed
