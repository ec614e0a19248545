#!/bin/sh
# The command `tokitai`. Python itself ends with 1, which means refuted, where an interrupt or a lack
# of memory meets it while it loads its own modules; so an interrupt waits until there is a handler.
trap 'echo interrupted >&2; exit 130' INT
self=$0
case $self in
*/*) ;;
*) if [ -e "$self" ]; then self=./$self; else self=$(command -v -- "$self"); fi ;; # sh tokitai
esac
python=${self%/*}/python3
if [ -h "$self" ] || [ -h "${self%/*}" ]; then # Python looks for its environment by this path
    self=$(readlink -f -- "$self") && python=${self%/*}/python3
fi
[ -x "$python" ] || python=python3
for kind in v d; do
    limit=$(ulimit -"$kind")
    if [ "$limit" != unlimited ] && [ "$limit" -lt 65536 ]; then
        echo "error: memory is limited to $limit KiB (ulimit -$kind), with which Python does not start" >&2
        exit 2
    fi
done
wait='env --block-signal=INT'
$wait true 2>/dev/null || wait= # coreutils before 8.31
exec $wait "$python" -P -S -c '
import _signal, posix, sys


def end(code, line):
    try:
        posix.write(2, line.encode() + b"\n")
    except OSError:
        pass
    posix._exit(code)


if _signal.getsignal(2) is _signal.default_int_handler:
    _signal.signal(2, lambda *_: end(130, "interrupted"))
_signal.pthread_sigmask(_signal.SIG_UNBLOCK, (2,))
try:
    import site

    site.main()
    sys.argv = sys.argv[1:]
    from tokitai_cli.cli.main import main
except BaseException as error:
    hint = "\n  PYTHON -m tokitai_cli takes another one" if isinstance(error, ImportError) else ""
    end(70, f"internal error: {sys.executable} cannot load tokitai: {type(error).__name__}{hint}")
main()
' "$0" "$@"
