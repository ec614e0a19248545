"""The rocm device: AMD GPUs through hipcc (or amdclang++) and the HIP runtime."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.core.errors import BuildError, CodeError, UsageError
from tokitai_cli.core.file_kind import USUAL
from tokitai_cli.core.flags import of_code
from tokitai_cli.core.model.device import (
    TRAITS,
    DeviceOptions,
    Fact,
    Probe,
    Recipe,
    Sanitizer,
    Traits,
    Unit,
)
from tokitai_cli.devices import amd
from tokitai_cli.devices.environment import (
    child_environment,
    compiler_environment,
    dropped_facts,
)
from tokitai_cli.devices.gpu import Vendor
from tokitai_cli.devices.programs import first_program
from tokitai_cli.devices.shared_wording import (
    NOT_MACHINE_CODE,
    SHARED_UNGUARDED,
    set_variables,
    unit_words,
    variable_facts,
)

if TYPE_CHECKING:
    from tokitai_cli.core.model.harness import HarnessRequest

_AMD = Vendor(
    device="rocm",
    maker="AMD",
    runtime="ROCm/HIP",
    # A processor, or a generic target, with features such as gfx90a:sramecc+:xnack-.
    arch=re.compile(r"gfx[0-9a-f]+(?:-[0-9a-z-]*generic)?(?::[a-z]+[+-])*"),
    hint="run on a machine with an AMD GPU, its driver (/dev/kfd) and ROCm (hipcc)",
)
_NO_COMPILER = (
    "no hipcc or amdclang++ (searched HIPCC, ROCM_PATH, ROCM_HOME, HIP_PATH, /opt/rocm, PATH)"
)
# Programs that hipcc calls, and the device libraries, in the layouts of ROCm 5, 6 and 7.
_BESIDE = ("bin/hipcc.pl", "bin/hipcc.bin", "bin/hipconfig")
_BELOW = (
    "llvm/bin/clang++",
    "llvm/bin/lld",
    "lib/llvm/bin/clang++",
    "lib/llvm/bin/lld",
    "amdgcn/bitcode/ocml.bc",
    "amdgcn/bitcode/ockl.bc",
    "lib/llvm/lib/clang/*/lib/amdgcn/bitcode/oc[km]l.bc",
    "lib/*/amdgcn/bitcode/oc[km]l.bc",
)
# In front of the architecture in a library's name: oclc_isa_version_90a.bc.
_ISA = "oclc_isa_version_"
_CALLED = ("clang", "lld", "ld", "as")
_MENDS = (
    (r"cannot find (?:ROCm|HIP) (?:device library|device libraries|runtime)",
     "look at --arch (which of them this ROCm has libraries for) and at ROCM_PATH"),
    (r"invalid target ID|cannot determine \S+ architecture|[Uu]nsupported (?:HIP )?gpu architecture",
     "look at --arch: name the architecture, such as --arch gfx1101"),
)  # fmt: skip


class RocmDevice:
    """AMD GPUs."""

    name: str = "rocm"
    traits: Traits = TRAITS["rocm"]
    non_claims: tuple[str, ...] = (NOT_MACHINE_CODE, SHARED_UNGUARDED)

    def probe(self, options: DeviceOptions) -> Probe:
        """Look for /dev/kfd, the agents and a compiler."""
        agents, how = _agents()
        compiler = _compiler()
        facts = [*dropped_facts(), *variable_facts(self.traits.obeyed)]
        facts += [
            Fact("agent", f"{agent.arch}, {agent.name}" if agent.name else agent.arch, how)
            for agent in agents
        ]
        if compiler is not None:
            facts.append(Fact("compiler", str(compiler[0]), compiler[1]))
        wrong = _AMD.wrong_arch(options)
        arch, source = (options.arch, "--arch") if wrong else _arch(options, agents, how)
        facts.append(Fact("arch", arch, source))
        no_driver = "" if amd.DRIVER.exists() else "no AMD GPU driver (/dev/kfd)"
        no_gpu = _AMD.no_gpu(options, len(agents), "no AMD GPU")
        archs, folder = ((), "") if compiler is None else _libraries(compiler[0])
        if archs:
            facts.append(Fact("builds for", ", ".join(archs), folder))
        known = wrong or not archs or arch.partition(":")[0] in archs
        lacks = (
            *(wrong, no_driver, no_gpu),
            _NO_COMPILER if compiler is None else "",
            "" if known else f"no device library for {arch} in {folder}",
        )
        only = "" if known else f" for {' or '.join(archs[-3:])}, with --arch"
        alone = bool(no_driver or no_gpu)
        return _AMD.probe(
            arch, facts, lacks, buildable=compiler is not None, alone=alone, only=only
        )

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Recipe for hipcc, else amdclang++; raises BuildError where neither is there."""
        found = _compiler()
        if found is None:
            raise BuildError(_NO_COMPILER, hint=_AMD.hint)
        if wrong := _AMD.wrong_arch(options):
            raise UsageError(wrong, hint="give one such as gfx1101 or gfx90a:xnack-, or native")
        compiler = found[0]
        arch, _ = _arch(options, *_agents())
        if arch == "native":
            raise BuildError(
                "--arch native: there is no GPU from which to take it",
                hint="name it: --arch gfx1101",
            )
        root = compiler.resolve().parent.parent
        common = (
            "-fuse-cuid=none",  # by itself clang names a unit by a digest of its path
            f'-DTOKITAI_BUILT_FOR="{arch}"',
            *_link_flags(compiler, root)[:1],  # --rocm-path is where the headers are too
        )
        base = (str(compiler), "-std=c++17", "-O2", f"--offload-arch={arch}", *common)
        made = Recipe(
            device=self.name,
            arch=arch,
            compiler=compiler,
            command=(*base, *unit_words(self.name, "hip", defines, flags)),
            server=(*base, *unit_words(self.name, "hip", {}, of_code(flags))),
            link=(
                str(compiler),
                f"--offload-arch={arch}",
                "{object}",
                "{server}",
                *flags,
                *_link_flags(compiler, root),
                "-Wl,--trace",
                "-o",
                "{output}",
            ),
            environment=_environment(),
            source_suffix=".hip",
            version_command=(str(compiler), "--version"),
            wraps=tuple(_wrapped(compiler, root)),
            wrap_commands=tuple((str(compiler), f"-print-prog-name={name}") for name in _CALLED),
            inspect=_inspect,
            mends=_MENDS,
        )
        return msgspec.structs.replace(
            made, machine_code=_loading(made, ("--cuda-host-only", *common))
        )

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Argv of the child."""
        return (str(artifact), f"--gpu={options.gpu}")

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the child."""
        del options
        return child_environment(set_variables(self.traits.obeyed))

    def sanitizers(self) -> tuple[Sanitizer, ...]:
        """None: nothing watches its kernels."""
        return ()


def _environment() -> dict[str, str]:
    """Environment of hipcc. Where CUDA is installed too it would take nvcc, but for HIP_PLATFORM."""
    return compiler_environment({"HIP_PLATFORM": "amd", **set_variables(("ROCM_PATH", "HIP_PATH"))})


def _loading(made: Recipe, host_words: tuple[str, ...]) -> Recipe:
    """The recipe of a program that loads machine code made elsewhere: host code alone is compiled."""
    compiler = made.compiler
    words = (str(compiler), "-std=c++17", "-O2", *host_words)
    words = (*words, *unit_words(made.device, "hip", {}, ()))
    link = _link_flags(compiler, compiler.resolve().parent.parent)
    return msgspec.structs.replace(
        made,
        command=words,
        server=words,
        link=(str(compiler), "{object}", "{server}", *link, *made.link[-3:]),
        inspect=None,
        unit=Unit(functools.partial(_of_machine_code, arch=made.arch), "1"),
    )


def _of_machine_code(request: HarnessRequest, arch: str) -> tuple[str, tuple[Fact, ...]]:
    from tokitai_cli.devices import module_unit

    return module_unit.of_amd(request, arch)


def _inspect(artifact: Path, log: str) -> tuple[Fact, ...]:
    from tokitai_cli.devices.amdgpu.binary import bundles
    from tokitai_cli.devices.amdgpu.binary.objects import read_code_object
    from tokitai_cli.devices.amdgpu.inspection import evidence

    del log
    try:
        held = [read_code_object(one.data) for one in bundles.code_objects(artifact)]
    except CodeError as error:
        return (Fact("code object", f"not read: {error.message}", "the executable"),)
    return tuple(fact for code in held for fact in evidence(code, code.kernels))


def _agents() -> tuple[tuple[amd.Agent, ...], str]:
    found, how = amd.agents()
    return amd.shown(found, dict(os.environ)), how


def _arch(options: DeviceOptions, agents: tuple[amd.Agent, ...], how: str) -> tuple[str, str]:
    """Architecture to build for and how it is known: --arch, else an override, the GPU, a default.

    "native" is the GPU's, and stays that word where there is none.
    """
    if options.arch and options.arch != "native":
        return options.arch, "--arch"
    override = amd.overridden(os.environ.get(amd.OVERRIDE, ""))
    if override:
        return override, amd.OVERRIDE
    if options.gpu < len(agents):
        return agents[options.gpu].arch, how
    return (options.arch, "--arch") if options.arch else (USUAL, "default")


def _compiler() -> tuple[Path, str] | None:
    """The hipcc to use and how it was found, else an amdclang++."""
    chosen = os.environ.get("HIPCC", "")
    if chosen:  # a compiler that was asked for is never replaced by another
        return first_program([(chosen, "HIPCC")])
    candidates = [(f"{root}/bin/hipcc", source) for root, source in amd.roots()]
    candidates.append(("hipcc", "PATH"))
    candidates += [(f"{root}/bin/amdclang++", source) for root, source in amd.roots()]
    candidates.append(("amdclang++", "PATH"))
    return first_program(candidates)


def _link_flags(compiler: Path, root: Path) -> tuple[str, ...]:
    """Flags that hipcc adds by itself and a plain clang needs."""
    if not compiler.name.startswith("amdclang"):
        return ()
    # amdclang++ is a link in bin/ to lib/llvm/bin (ROCm 6, 7) or llvm/bin (ROCm 5).
    base = next(
        (path for path in (compiler.parent.parent, *root.parents) if _has_runtime(path)), root
    )
    return (
        f"--rocm-path={base}",
        "--hip-link",
        f"-L{base}/lib",
        f"-Wl,-rpath,{base}/lib",
        "-lamdhip64",
    )


def _has_runtime(folder: Path) -> bool:
    return (folder / "lib" / "libamdhip64.so").exists()


def _libraries(compiler: Path) -> tuple[tuple[str, ...], str]:
    """Architectures that a compiler has device libraries for, oldest first, and the libraries' folder.

    None where they lie in no known place.
    """
    for path in _wrapped(compiler, compiler.resolve().parent.parent):
        if path.name == "ocml.bc":
            found = [one.stem.removeprefix(_ISA) for one in path.parent.glob(f"{_ISA}*.bc")]
            return tuple(f"gfx{name}" for name in sorted(found, key=_age)), str(path.parent)
    return (), ""


def _age(name: str) -> tuple[int, str]:
    """Order of architectures: their last two digits are minor and stepping."""
    return len(name.partition("-")[0]), name


def _wrapped(compiler: Path, root: Path) -> list[Path]:
    bases = dict.fromkeys([compiler.parent.parent, root])
    found = [base / name for base in bases for name in _BESIDE]
    found += [path for base in bases for pattern in _BELOW for path in sorted(base.glob(pattern))]
    return [path for path in dict.fromkeys(found) if path.is_file()]
