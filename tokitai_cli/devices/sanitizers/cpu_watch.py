"""What watches kernels on the cpu device: each check is a build and a launch of its own.

address: AddressSanitizer, with the gaps about buffers and shared arrays poisoned. accesses: what
compilers put in for ThreadSanitizer and for undefined behaviour, served by the tool's own callbacks,
since it knows what orders GPU threads. schedules: the plain build in several orders of its threads.
coverage: g++'s counts of what ran.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from tokitai_cli.core import process
from tokitai_cli.core.model.device import DeviceOptions, Recipe, Sanitizer, SanitizerKind
from tokitai_cli.devices.cpu import ZIG, CpuDevice, WatchWords, compiler, is_gcc
from tokitai_cli.devices.environment import child_environment, compiler_environment
from tokitai_cli.devices.programs import answer, first_program, pip_zig
from tokitai_cli.devices.sanitizers.coverage import Coverage, gcov_of
from tokitai_cli.devices.sanitizers.watch_log import read_log

_PROBE_SECONDS = 60.0
_TRIES = 3  # of a program that may start at some addresses only
_NONE: tuple[tuple[tuple[str, ...], str] | None, tuple[str, ...]] = (None, ())
# Where the device's own compiler lacks a sanitizer, another one may have it.
_OTHERS = ("g++", "clang++", *(f"clang++-{number}" for number in range(22, 13, -1)))
_DEBUG = ("-O2", "-gdwarf-4", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
# Functions of the C library that write through pointers, in single and double precision.
_WRITING = tuple(
    name.format(kind)
    for name in ("sincos{}", "frexp{}", "modf{}", "remquo{}", "lgamma{}_r")
    for kind in ("", "f")
)
_UNDEFINED = (
    "alignment,bool,bounds,builtin,enum,integer-divide-by-zero,nonnull-attribute,null,"
    "pointer-overflow,returns-nonnull-attribute,shift,signed-integer-overflow,vla-bound"
)
# Set whole: what a user's own environment says of them is not passed on.
_ASAN_OPTIONS = ":".join(
    (
        "detect_leaks=0,halt_on_error=0,symbolize=0,suppress_equal_pcs=0,exitcode=1",
        "handle_segv=0,handle_sigbus=0,handle_sigfpe=0,handle_sigill=0,handle_abort=0",
        "use_sigaltstack=0,detect_stack_use_after_return=0,print_legend=0,color=never",
    )
).replace(",", ":")
SCHEDULES = 8


class Check(msgspec.Struct, frozen=True):
    """A watched build: its name, what it looks at, its words, and the flag that a compiler must have."""

    tool: str
    looks: tuple[tuple[SanitizerKind, str], ...]
    words: WatchWords
    flag: str = ""
    #: Whether that flag is one whose runtime must be there too.
    runtime: bool = True
    #: One repetition will do.
    once: bool = False
    #: Of a child; {log} stands for the file of its findings, {folder} for its own.
    environment: Mapping[str, str] = {}
    options: tuple[str, ...] = ()


ADDRESS = Check(
    tool="AddressSanitizer",
    looks=(("memory", "every access to global, shared and local memory"),),
    words=WatchWords(
        units=("-DTOKITAI_WATCH_ADDRESS=1",),
        kernels=(*_DEBUG, "-fsanitize=address", "-fsanitize-recover=address"),
        link=("-fsanitize=address",),
    ),
    flag="-fsanitize=address",
    # Where an access goes does not hang on what outputs held, nor on the order of threads.
    once=True,
    environment={"ASAN_OPTIONS": _ASAN_OPTIONS},
    options=("--watch={log}",),
)
ACCESSES = Check(
    tool="watch of accesses",
    looks=(
        ("races", "pairs of accesses to global and shared memory, in a block and between blocks"),
        ("initialisation", "reads of global and shared memory that was never written"),
        ("undefined", "overflow of integers, shifts, indices, alignment"),
        ("barriers", "which threads reach a block's barriers and take part in shuffles"),
    ),
    words=WatchWords(
        units=("-DTOKITAI_WATCH_ACCESSES=1", "-DTOKITAI_STACK_KIB=256", "-fno-omit-frame-pointer"),
        kernels=(
            *_DEBUG,
            # Every access of the source, those too that a compiler would leave out or put together.
            "-O0",
            "-fsanitize=thread",
            f"-fsanitize={_UNDEFINED}",
            f"-fsanitize-recover={_UNDEFINED}",
        ),
    ),
    # One after the other, so that what happened before what is known without clocks of OS threads.
    options=("--threads=1", "--watch={log}"),
)
VALUES = Check(
    tool="watch of values",
    looks=(("locals", "uninitialised local variables"),),
    words=WatchWords(
        units=("-DTOKITAI_WATCH_VALUES=1", "-DTOKITAI_STACK_KIB=256", "-fno-omit-frame-pointer"),
        kernels=(
            *_DEBUG,
            "-fsanitize=kernel-memory",
            # Told where it decides something, not where it is passed on.
            "-fno-sanitize-memory-param-retval",
        ),
        link=tuple(f"-Wl,--wrap={name}" for name in _WRITING),
    ),
    flag="-fsanitize=kernel-memory",
    runtime=False,
    once=True,
    options=("--threads=1", "--watch={log}"),
)
COVERAGE = Check(
    tool="gcov",
    looks=(("coverage", "lines and branches of the kernels"),),
    # Of what the kernels' own files hold: counts of the scheduler's would cost eight times as much.
    words=WatchWords(
        kernels=("-O1", "--coverage", "-fprofile-exclude-files=/tokitai_host/;^/usr/"),
        link=("--coverage",),
    ),
    flag="--coverage",
    once=True,
    # The file is written below the folder, whatever the build's own folder was called.
    environment={"GCOV_PREFIX": "{folder}", "GCOV_PREFIX_STRIP": "100"},
    options=("--threads=1",),
)
_BUILT = "built"  # names the folder of the executable


def sanitizers(device: CpuDevice) -> tuple[Sanitizer, ...]:
    """Every check; those that cannot run say what is missing."""
    schedules = Sanitizer(
        tool="scheduler",
        looks=(
            ("schedules", f"outputs in {SCHEDULES} orders of blocks, warps and threads"),
            ("barriers", "barriers that not all threads reach, and deadlocks"),
        ),
        repeat=SCHEDULES,
    )
    watched = (_sanitizer(device, check) for check in (ADDRESS, ACCESSES, VALUES, COVERAGE))
    return (schedules, *watched)


def beside(device: CpuDevice) -> Sanitizer:
    """The check that a run on any device has beside it: it needs no runtime, and one repetition."""
    return msgspec.structs.replace(_sanitizer(device, ACCESSES), once=True)


def _sanitizer(device: CpuDevice, check: Check) -> Sanitizer:
    found = compiler()
    drivers = [] if found is None else [found]
    if found is not None and found[1] != "CXX":  # one that was asked for is never replaced
        others = [first_program([(name, "PATH")]) for name in _OTHERS]
        drivers += [((str(one[0]),), one[1]) for one in others if one is not None]
        zig = pip_zig()
        # It has Clang's checks, and no runtimes of theirs.
        if zig is not None and not check.runtime:
            drivers.append(((str(zig), "c++"), ZIG))
    found_by = ((one, _usable(one[0], check) if check.flag else ()) for one in drivers)
    chosen, prefix = next(((one, words) for one, words in found_by if words is not None), _NONE)
    if chosen is None:
        names = ", ".join(shlex.join(driver) for driver, _ in drivers) or "there is none"
        missing = (
            f"none of the compilers here has {check.flag}, or its programs do not start, "
            f"not under setarch -R either ({names})"
        )
        return Sanitizer(tool=check.tool, looks=check.looks, missing=missing)
    return Sanitizer(
        tool=check.tool,
        looks=check.looks,
        program=shlex.join(chosen[0]),
        version=answer([*chosen[0], "--version"]).partition("\n")[0],
        under=lambda _, folder: _WatchedCpu(device, check, chosen, prefix, folder),
        read=lambda text: read_log(text, check.tool),
        judges=False,
        once=check.once,
        unexecuted=_unexecuted(gcov_of(chosen[0])) if check is COVERAGE else None,
    )


def _usable(driver: tuple[str, ...], check: Check) -> tuple[str, ...] | None:
    return _prefix(driver, check) if check is not COVERAGE or gcov_of(driver) else None


def _unexecuted(gcov: str) -> Callable[[Path], tuple[str, ...]]:
    """What none of the children so far has executed, after those of a folder."""
    coverage = Coverage(gcov)

    def told(folder: Path) -> tuple[str, ...]:
        for built in sorted(folder.glob(f"*/{_BUILT}")):
            coverage.add(Path(built.read_text("utf-8")), built.parent)
        return coverage.texts()

    return told


def _prefix(driver: tuple[str, ...], check: Check) -> tuple[str, ...] | None:
    """Words in front of the check's children; None where the compiler does not do for it.

    Runtimes of some versions do not start at addresses as random as vm.mmap_rnd_bits has them.
    """
    return _started(driver, check.flag, run=check.runtime)


@functools.cache
def _started(driver: tuple[str, ...], flag: str, *, run: bool) -> tuple[str, ...] | None:
    with process.temporary_folder(prefix="probe-") as folder:
        (folder / "probe.cpp").write_text("int main() { return 0; }\n", encoding="utf-8")
        probe, environment = str(folder / "probe"), compiler_environment()
        argv = [*driver, flag, str(folder / "probe.cpp"), "-o", probe, *([] if run else ["-c"])]
        if process.run(argv, env=environment, timeout=_PROBE_SECONDS).returncode != 0:
            return None
        if not run:
            return ()

        def starts(prefix: tuple[str, ...]) -> bool:
            command = [*prefix, probe]
            tries = (process.run(command, env=environment, timeout=10.0) for _ in range(_TRIES))
            return all(done.returncode == 0 for done in tries)

        fixed = first_program([("setarch", "PATH")])
        prefixes = [(), *([(str(fixed[0]), "-R")] if fixed is not None else [])]
        return next((prefix for prefix in prefixes if starts(prefix)), None)


class _WatchedCpu(CpuDevice):
    """The cpu device as a check builds and starts its children; logs go to `folder`."""

    def __init__(
        self,
        device: CpuDevice,
        check: Check,
        compiled_by: tuple[tuple[str, ...], str],
        prefix: tuple[str, ...],
        folder: Path,
    ) -> None:
        self.non_claims = device.non_claims
        self._check = check
        self._compiled_by = compiled_by
        self._prefix = prefix
        self._folder = folder
        self._children = 0

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Recipe with the check's words."""
        words = self._check.words
        if not is_gcc(self._compiled_by[0]):
            # Clang's `bounds` has a part that traps, whatever it is told.
            kernels = tuple(word.replace(",bounds,", ",array-bounds,") for word in words.kernels)
            if self._check is ACCESSES:  # a read in front of a write to the same place is left out
                kernels += ("-mllvm", "-tsan-instrument-read-before-write=1")
                kernels += ("-mllvm", "-tsan-distinguish-volatile=1")
            if self._compiled_by[1] == ZIG:  # it has checks of its own where nothing is optimised
                kernels = ("-fno-sanitize=undefined", *kernels)
            words = msgspec.structs.replace(words, kernels=kernels)
        elif self._check is ACCESSES:
            copies = (f"-fno-builtin-{name}" for name in ("memcpy", "memmove", "memset"))
            kernels = (*words.kernels, *copies, "--param", "tsan-distinguish-volatile=1")
            words = msgspec.structs.replace(words, kernels=kernels)
        return self.recipe_by(*self._compiled_by, options, defines, flags, words)

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Argv of the child, with the file of its findings."""
        self._children += 1
        self._own.mkdir()
        (self._own / _BUILT).write_text(str(artifact.parent), encoding="utf-8")
        self._log.touch()
        command = (*self._prefix, *super().launch_command(artifact, options))
        return (*command, *(word.format(log=self._log) for word in self._check.options))

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the child, with the sanitizer's options."""
        del options
        given = self._check.environment.items()
        return child_environment({name: value.format(folder=self._own) for name, value in given})

    @property
    def _own(self) -> Path:
        """Folder of the latest child."""
        return self._folder / f"{self._children:06}"

    @property
    def _log(self) -> Path:
        return self._folder / f"{self._children:06}.log"
