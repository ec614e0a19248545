"""The gfx device: AMD machine code, translated and executed on the host.

A clang or pip's zig makes a code object of the HIP source (gfx_compiler); its machine code is
decoded and translated to C++ (tokitai_cli/devices/amdgpu), which the host's compiler builds.
"""

from __future__ import annotations

import functools
import hashlib
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tokitai_cli.core import resources
from tokitai_cli.core.errors import InadmissibleError, UsageError, near
from tokitai_cli.core.file_kind import USUAL
from tokitai_cli.core.model.device import (
    TRAITS,
    BuildStage,
    DeviceOptions,
    Fact,
    Probe,
    Recipe,
    Sanitizer,
    SanitizerKind,
    Traits,
    Unit,
    warp_size_of,
)
from tokitai_cli.devices import amd, cpu
from tokitai_cli.devices.amdgpu import gfx_compiler
from tokitai_cli.devices.environment import (
    child_environment,
    compiler_environment,
    dropped_facts,
)

if TYPE_CHECKING:
    from tokitai_cli.core.model.harness import HarnessRequest

# Whose instructions are decoded and have the meanings of the RDNA3 manual, or of CDNA's.
ARCHITECTURES = (
    *("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"),
    *("gfx1100", "gfx1101", "gfx1102", "gfx1103"),
    *("gfx1150", "gfx1151", "gfx1152", "gfx1153"),
)
# What every run watches (docs/gfx.md).
_LOOKS: tuple[tuple[SanitizerKind, str], ...] = (
    ("memory", "every access of global memory, LDS and scratch by the machine code"),
    ("races", "accesses of LDS and of written global memory by waves of the machine code"),
    (
        "initialisation",
        "reads of global memory and LDS, and uses of registers, that were never set",
    ),
)
_UNIT, _UNIT_DEPFILE, _OBJECT = "code.cpp", "code.d", "child.o"


class GfxDevice:
    """gfx machine code on the CPU."""

    name: str = "gfx"
    traits: Traits = TRAITS["gfx"]
    non_claims: tuple[str, ...] = (
        "not executed on a GPU",
        "timing, caches, memory model and hazards are not modelled",
        "transcendental instructions are modelled to within 1 ulp",
    )

    def probe(self, options: DeviceOptions) -> Probe:
        """Look for both compilers."""
        chain, host = gfx_compiler.toolchain(options.arch), cpu.compiler()
        lack, hint = gfx_compiler.missing(options.arch)
        facts = [*cpu.host_facts(), *dropped_facts()]
        if chain is not None:
            facts.append(Fact("compiler", shlex.join(chain.clang), chain.source))
            facts.append(Fact("linker", shlex.join(chain.linker), chain.source))
        if host is not None:
            facts.append(Fact("host-compiler", shlex.join(host[0]), host[1]))
        wrong = _wrong_arch(options)
        lacks = [
            wrong,
            lack if chain is None else "",
            cpu.missing() if host is None else "",
        ]
        mends = [
            f"give one of {', '.join(ARCHITECTURES)}" if wrong else "",
            hint if chain is None else "",
            cpu.HINT if host is None else "",
        ]
        return Probe(
            self.name,
            self.traits.device_class,
            available=not any(lacks),
            buildable=not any(lacks),
            arch=options.arch or USUAL,
            facts=tuple(facts),
            missing="; ".join(filter(None, lacks)),
            hint="; ".join(filter(None, mends)),
        )

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Recipe of six steps; raises InadmissibleError where one of its programs is not there."""
        chain, host = gfx_compiler.toolchain(options.arch), cpu.compiler()
        if chain is None or host is None or _wrong_arch(options):
            probe = self.probe(options)
            raise InadmissibleError(
                f"the gfx device is unavailable: {probe.missing}", hint=probe.hint
            )
        arch = options.arch or USUAL
        given = tuple(f"-D{name}={defines[name]}" for name in sorted(defines))
        compiled, assembled, linked = gfx_compiler.commands(chain, arch, given, flags)
        kernels = resources.kernels_dir()
        base = (
            *(*host[0], "-std=c++17", "-O3", "-g1", "-march=native", *cpu.FLOATING_POINT),
            *("-fno-strict-aliasing", "-pthread", "-DTOKITAI_RUNS_GFX=1"),
            f"-DTOKITAI_WAVE_SIZE={warp_size_of(self.name, arch, options)}",
            f"-DTOKITAI_SHARED_LIMIT={amd.shared_limit(arch)}",
            *(f"-I{folder}" for folder in (kernels, kernels / "host", kernels / "harness")),
        )
        object_of = ("-MD", "-MF", _UNIT_DEPFILE, "-x", "c++", "-c", _UNIT, "-o", _OBJECT)
        served = ("-MD", "-MF", "{depfile}", "-x", "c++", "-c", "{source}", "-o", "{output}")
        trace = () if host[1] == gfx_compiler.ZIG else ("-Wl,--trace",)
        link = (*host[0], "-O3", "-pthread", "{object}", "{server}", *trace, "-o", "{output}")
        return Recipe(
            device=self.name,
            arch=arch,
            compiler=Path(chain.clang[0]),
            command=compiled,
            makes=gfx_compiler.ASSEMBLY,
            stages=(
                BuildStage(gfx_compiler.OBJECT, assembled),
                BuildStage(gfx_compiler.CODE_OBJECT, linked),
                BuildStage(_UNIT, call=_translate, version=_translator()),
                BuildStage(_OBJECT, (*base, *object_of)),
            ),
            kept=(gfx_compiler.CODE_OBJECT,),
            depfiles=(_UNIT_DEPFILE,),
            server=(*base, *served),
            link=link,
            environment=compiler_environment(),
            source_suffix=".hip",
            version_command=(*chain.clang, "--version"),
            wraps=tuple(dict.fromkeys(Path(words[0]) for words in (chain.linker, host[0]))),
            resolved_features=cpu.features(),
            machine_code=_foreign(self.name, arch, host[0], (*base, *served), link),
        )

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Argv of the child: blocks are spread over `threads` OS threads."""
        return cpu.launch_words(artifact, options)

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the child."""
        del options
        return child_environment()

    def sanitizers(self) -> tuple[Sanitizer, ...]:
        """The device itself: every run looks at what a sanitizer would."""
        return (Sanitizer(tool="gfx device", looks=_LOOKS),)


def _foreign(
    device: str, arch: str, host: tuple[str, ...], command: tuple[str, ...], link: tuple[str, ...]
) -> Recipe:
    """The recipe of machine code made elsewhere: its translation alone is compiled, by `host`."""
    return Recipe(
        device=device,
        arch=arch,
        compiler=Path(host[0]),
        command=command,
        server=command,
        link=link,
        environment=compiler_environment(),
        source_suffix=".cpp",
        version_command=(*host, "--version"),
        resolved_features=cpu.features(),
        unit=Unit(functools.partial(_of_machine_code, arch=arch), _translator()),
    )


def _wrong_arch(options: DeviceOptions) -> str:
    """Why an architecture cannot be executed, or "". UsageError for what is no name of one."""
    arch = options.arch
    if not arch or arch in ARCHITECTURES:
        return ""
    if not arch.startswith("gfx"):
        raise UsageError(
            f"no architecture of the gfx device: {arch!r}", hint=near(arch, ARCHITECTURES)
        )
    return f"machine code for {arch} is not decoded"


def _translate(folder: Path, request: HarnessRequest) -> tuple[Fact, ...]:
    from tokitai_cli.devices.amdgpu import gfx_unit

    return gfx_unit.translate(folder / gfx_compiler.CODE_OBJECT, folder / _UNIT, request)


def _of_machine_code(request: HarnessRequest, arch: str) -> tuple[str, tuple[Fact, ...]]:
    from tokitai_cli.devices.amdgpu import gfx_unit

    return gfx_unit.of_machine_code(request, arch)


@functools.cache
def _translator() -> str:
    """Digest of the code that translates."""
    folder = Path(__file__).parent / "amdgpu"
    digest = hashlib.sha256()
    for path in (folder.with_name("foreign.py"), *sorted(folder.rglob("*.[pt][yx]*"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
