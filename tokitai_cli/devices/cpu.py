"""The cpu device: unmodified HIP kernels on the host, by any C++ compiler."""

from __future__ import annotations

import functools
import os
import platform
import shlex
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tokitai_cli.core.errors import BuildError, UsageError
from tokitai_cli.core.flags import fault, of_code
from tokitai_cli.core.model.device import (
    TRAITS,
    WARP_SIZES,
    DeviceOptions,
    Fact,
    Probe,
    Recipe,
    Sanitizer,
    SharedGuards,
    Traits,
)
from tokitai_cli.devices import amd
from tokitai_cli.devices.environment import (
    child_environment,
    compiler_environment,
    dropped_facts,
)
from tokitai_cli.devices.programs import first_program, pip_zig, read_text
from tokitai_cli.devices.shared_wording import NOT_MACHINE_CODE, unit_words

# AMD's compiler is a clang, and reads attributes that g++ leaves out.
_COMPILERS = ("clang++", "g++", "c++")
HINT = "install g++ or clang++, or `pip install ziglang`"
# Every operation rounds by itself, as the source says: no fused multiply-adds of the compiler's own.
FLOATING_POINT = ("-ffp-contract=off", "-fno-math-errno")
# Every shared array lies in a section of its own, so that it can be given guards. Where an address is
# no multiple of what its type asks for, as a GPU faults there, the harness is called. Behind a spec's
# flags, which cannot take these back.
_CHECKED = (
    "-fdata-sections",
    "-fno-lto",
    "-fsanitize=alignment",
    "-fno-sanitize-recover=alignment",
    # What a compiler leaves out is told, and may be refused.
    "-Wattributes",
    "-Wunknown-pragmas",
)
ZIG = "pip's ziglang"  # how it was found
_ZIG_NOTICE = "the first build with zig takes about two minutes: it builds its C++ library once"
# Programs that GCC and Clang drivers call; a driver that calls none prints the bare name.
_CALLED = ("cc1plus", "as", "ld", "collect2")


class WatchWords(msgspec.Struct, frozen=True):
    """Words of a watched build: of both units, of the kernels' behind all others, of the link."""

    units: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    link: tuple[str, ...] = ()


_PLAIN = WatchWords()


class CpuDevice:
    """GPU threads as fibers, blocks over the host's cores."""

    name: str = "cpu"
    traits: Traits = TRAITS["cpu"]
    non_claims: tuple[str, ...] = (
        "not GPU evidence",
        "host compiler's code, not the GPU's",
        NOT_MACHINE_CODE,
    )

    def probe(self, options: DeviceOptions) -> Probe:
        """Look for a compiler. The hardware is always there: without a compiler, builds fail."""
        found = compiler()
        facts = [
            *host_facts(),
            Fact("warp-size", str(options.warp_size or WARP_SIZES[0]), "option"),
            *dropped_facts(),
        ]
        if found is not None:
            facts.append(Fact("compiler", shlex.join(found[0]), found[1]))
        return Probe(
            self.name,
            self.traits.device_class,
            available=True,
            buildable=found is not None,
            arch=platform.machine(),
            facts=tuple(facts),
            missing="" if found is not None else missing(),
            hint="" if found is not None else HINT,
        )

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Recipe for the compiler of CXX or PATH, else pip's zig; raises BuildError without one."""
        found = compiler()
        if found is None:
            raise BuildError(missing(), hint=HINT)
        return self.recipe_by(*found, options, defines, flags)

    def recipe_by(
        self,
        driver: tuple[str, ...],
        source: str,
        options: DeviceOptions,
        defines: Mapping[str, str],
        flags: tuple[str, ...],
        watch: WatchWords = _PLAIN,
    ) -> Recipe:
        """Recipe for a compiler and how it was found, with the further words of a watched build."""
        _check_words(driver)
        is_zig = source == ZIG
        warp_size = options.warp_size or WARP_SIZES[0]
        if warp_size not in WARP_SIZES:
            raise UsageError(f"the warp size is 32 or 64, not {warp_size}")
        if is_zig and any(flag.startswith(("-l", "-L")) for flag in flags):
            raise BuildError("zig does not report which libraries it links", hint=HINT)
        base = (*_words(driver, warp_size, options.arch), *watch.units)
        # Dynamic shared memory has nothing to initialise, in a namespace without a name either.
        told = ("-Wa,--MD,{assembled}", "-fno-extern-tls-init") if is_gcc(driver) else ()
        link = (*driver, "-O3", "-pthread", "{object}", "{server}", *flags, "-fno-lto", *watch.link)
        trace = () if is_zig else ("-Wl,--trace",)
        query = tuple((*driver, f"-print-prog-name={name}") for name in _CALLED)
        command = (
            *base,
            *unit_words(self.name, "c++", defines, (*flags, *_CHECKED, *watch.kernels, *told)),
        )
        # Clang's own assembler would have taken files in already; for another one it leaves the text be.
        assembly = (*("-S" if word == "-c" else word for word in command), "-fno-integrated-as")
        return Recipe(
            device=self.name,
            arch=platform.machine(),
            compiler=Path(driver[0]),
            command=command,
            assembly=() if told else assembly,
            server=(*base, *unit_words(self.name, "c++", {}, (*of_code(flags), "-fno-lto"))),
            link=(*link, *trace, "-o", "{output}"),
            branch=amd.branch_macros(options.arch, warp_size),
            shows_copies=not told,
            inspect_object=_inspect_object,
            shared_guards=SharedGuards(front=256, back=768, last=65536),
            environment=compiler_environment(),
            source_suffix=".cpp",
            version_command=(*driver, "--version"),
            wrap_commands=() if is_zig else query,
            resolved_features=features(),
            notice=_ZIG_NOTICE if is_zig else "",
        )

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Argv of the child: blocks are spread over `threads` OS threads."""
        return launch_words(artifact, options)

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the child."""
        del options
        return child_environment()

    def sanitizers(self) -> tuple[Sanitizer, ...]:
        """The compilers' own sanitizers, and the tool's watch of accesses and schedules."""
        from tokitai_cli.devices.sanitizers import cpu_watch

        return cpu_watch.sanitizers(self)


def library_recipe() -> Recipe:
    """Recipe of a shared library of the tool's own; raises BuildError without a compiler.

    Operations do not trap, so that loops with conditions are put into vectors.
    """
    found = compiler()
    if found is None:
        raise BuildError(missing(), hint=HINT)
    driver, source = found
    _check_words(driver)
    words = ("-std=c++17", "-O3", "-march=native", *FLOATING_POINT, "-fno-trapping-math")
    query = tuple((*driver, f"-print-prog-name={name}") for name in _CALLED)
    return Recipe(
        device="cpu",
        arch=platform.machine(),
        compiler=Path(driver[0]),
        command=(*driver, *words, "-shared", "-fPIC", "{source}", "-o", "{output}"),
        environment=compiler_environment(),
        source_suffix=".cpp",
        version_command=(*driver, "--version"),
        wrap_commands=() if source == ZIG else query,
        resolved_features=features(),
    )


def launch_words(artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
    """Argv of a child that runs on the host's cores."""
    threads = options.threads or _cores()
    if threads < 1:
        raise UsageError(f"the number of threads is at least 1, not {threads}")
    return (str(artifact), f"--threads={threads}")


def host_facts() -> tuple[Fact, ...]:
    """The processor that kernels run on."""
    return (
        Fact("cpu", _cpu_model(), "/proc/cpuinfo"),
        Fact("cores", str(_cores()), "scheduler affinity"),
        Fact("machine", platform.machine(), "uname"),
    )


def compiler() -> tuple[tuple[str, ...], str] | None:
    """Argv prefix of the C++ compiler and how it was found."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    if chosen:  # a compiler that was asked for is never replaced by another
        found = first_program([(chosen[0], "CXX")])
        return ((str(found[0]), *chosen[1:]), "CXX") if found is not None else None
    found = first_program([(name, "PATH") for name in _COMPILERS])
    if found is not None:
        return (str(found[0]),), found[1]
    zig = pip_zig()
    return ((str(zig), "c++"), ZIG) if zig is not None else None


def _inspect_object(path: Path) -> tuple[Fact, ...]:
    from tokitai_cli.devices.amdgpu.isa.facts import variables

    return tuple(variables(path.read_bytes(), "symbols of the object file"))


def _check_words(driver: tuple[str, ...]) -> None:
    """Raise UsageError for a word of CXX that could not be a flag of a spec either."""
    for word in driver[1:]:
        message, hint = fault(word) if word[0] in "-@" else ("", "")
        if message:
            raise UsageError(f"CXX: {message}", hint=hint)


def _words(driver: tuple[str, ...], warp_size: int, arch: str) -> tuple[str, ...]:
    """First words of every compilation."""
    return (
        *driver,
        "-std=c++17",
        "-O3",
        "-g1",
        "-march=native",
        *FLOATING_POINT,
        *_excess_precision(driver),
        # Shared memory is thread-local storage of the executable itself.
        "-ftls-model=local-exec",
        "-fno-strict-aliasing",
        "-pthread",
        "-DTOKITAI_DEVICE_CPU=1",
        f"-DTOKITAI_WARP_SIZE={warp_size}",
        f"-DTOKITAI_SHARED_LIMIT={amd.shared_limit(arch)}",
    )


def _excess_precision(driver: tuple[str, ...]) -> tuple[str, ...]:
    """Flag that makes GCC on x86 round each _Float16 operation (GCC manual, -fexcess-precision).

    Clang does so by itself and does not know the flag.
    """
    return ("-fexcess-precision=16",) if is_gcc(driver) and platform.machine() == "x86_64" else ()


def is_gcc(driver: tuple[str, ...]) -> bool:
    """Whether it is GCC, maybe behind a program such as ccache."""
    names = [Path(word).resolve().name for word in driver if not word.startswith("-")]
    return any("g++" in name or "gcc" in name for name in names) and "clang" not in str(names)


def missing() -> str:
    """Why there is no C++ compiler."""
    chosen = os.environ.get("CXX", "")
    if chosen:
        return f"no C++ compiler was found: CXX names {chosen!r}, which does not exist"
    return "no C++ compiler was found (looked for clang++, g++, c++ and pip's ziglang)"


def _cores() -> int:
    return len(os.sched_getaffinity(0))


@functools.cache
def _first_processor() -> dict[str, str]:
    """First block of /proc/cpuinfo; the file of a large machine is slow to read whole."""
    block = read_text("/proc/cpuinfo").partition("\n\n")[0]
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _cpu_model() -> str:
    facts = _first_processor()
    return facts.get("model name") or facts.get("CPU part") or platform.processor() or "unknown"


def features() -> str:
    """Tell what -march=native resolves to on this CPU: the fields that compilers decide by."""
    facts = _first_processor()
    names = ("vendor_id", "cpu family", "model", "stepping", "CPU implementer", "CPU part")
    model = [f"{name}={facts[name]}" for name in names if name in facts]
    flags = sorted((facts.get("flags") or facts.get("Features") or "").split())
    return " ".join([platform.machine(), *model, *flags])
