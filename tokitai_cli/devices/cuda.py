"""The cuda device: HIP sources on NVIDIA GPUs, built by nvcc over the headers of kernels/cuda."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.core.errors import BuildError, UsageError
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
from tokitai_cli.devices import nvidia
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

_DEFAULT_ARCH = "sm_90"
_HOST_COMPILERS = ("g++", "c++", "clang++")
_WARP_SIZE = 32
_NVIDIA = Vendor(
    device="cuda",
    maker="NVIDIA",
    runtime="CUDA",
    arch=re.compile(r"(?:sm_)?([1-9]\d{1,2}[af]?)"),
    hint="run on a machine with an NVIDIA GPU, its driver and the CUDA toolkit (nvcc)",
)
_NO_GPU = "no NVIDIA GPU (searched nvidia-smi, /proc/driver/nvidia, /dev/nvidia0)"
_NO_NVCC = "no nvcc (looked in CUDA_HOME, PATH, /usr/local/cuda)"
_NO_HOST = "no C++ compiler for nvcc (looked for g++, c++, clang++)"
# What nvcc takes by itself; every other option of a spec is one of GCC or Clang, for the host's code.
_NVCC_FLAG = re.compile(
    r"-(?:[DUIO].*|include=.*|std=.*|-.*|use_fast_math|fmad=.*|ftz=.*|prec-.*=.*|lineinfo|G)"
)
_TRANSLATED = {
    "-ffast-math": "-use_fast_math",
    "-ffp-contract=off": "-fmad=false",
    "-ffp-contract=fast": "-fmad=true",
}
_MENDS = (
    (r"Unsupported gpu architecture|is not (?:defined|supported) for option 'gpu-", "give --arch an"
     " architecture that this nvcc knows: nvcc --list-gpu-code"),
    (r"unsupported GNU version|unsupported clang version", "put a C++ compiler that this CUDA release"
     " supports first in PATH"),
)  # fmt: skip


class CudaDevice:
    """NVIDIA GPUs."""

    name: str = "cuda"
    traits: Traits = TRAITS["cuda"]
    non_claims: tuple[str, ...] = (
        "not AMD device evidence",
        "NVIDIA's branch of the preprocessor was judged, not AMD's",
        NOT_MACHINE_CODE,
        SHARED_UNGUARDED,
    )

    def probe(self, options: DeviceOptions) -> Probe:
        """Look for the driver, the GPUs, nvcc and a host compiler."""
        gpus, how = nvidia.gpus()
        nvcc, host = _nvcc(), _host_compiler()
        facts = [*dropped_facts(), *variable_facts(self.traits.obeyed)]
        facts += [
            Fact("gpu", f"{gpu.index}: {gpu.name}, {gpu.arch or 'architecture not reported'}", how)
            for gpu in gpus
        ]
        chosen = gpus[options.gpu] if options.gpu < len(gpus) else None
        if chosen is not None:
            facts.append(Fact("warp-size", str(_WARP_SIZE), "CUDA C++ Programming Guide"))
            if chosen.driver:
                facts.append(Fact("driver", chosen.driver, how))
        facts += [
            Fact(name, str(found[0]), found[1])
            for name, found in (("compiler", nvcc), ("host-compiler", host))
            if found is not None
        ]
        lacks = (
            _NVIDIA.wrong_arch(options),
            _NVIDIA.no_gpu(options, len(gpus), _NO_GPU),
            _NO_NVCC if nvcc is None else "",
            _NO_HOST if host is None else "",
        )
        buildable = nvcc is not None and host is not None
        arch = _arch(options, gpus)
        return _NVIDIA.probe(arch, facts, lacks, buildable=buildable, alone=chosen is None)

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Recipe for nvcc; raises BuildError where it or its host compiler is not there.

        Code for the one architecture is made and no PTX, so that what runs is what was built.
        """
        nvcc, host = _nvcc(), _host_compiler()
        if nvcc is None or host is None:
            raise BuildError(_NO_NVCC if nvcc is None else _NO_HOST, hint=_NVIDIA.hint)
        if wrong := _NVIDIA.wrong_arch(options):
            raise UsageError(wrong, hint="give one such as sm_90, or native")
        arch = _arch(options, nvidia.gpus()[0])
        if not _NVIDIA.arch.fullmatch(arch):
            raise BuildError(
                f"--arch {options.arch}: there is no GPU from which to take it",
                hint="name it: --arch sm_90",
            )
        base = _words(nvcc[0], host[0], arch)
        made = Recipe(
            device=self.name,
            arch=arch,
            compiler=nvcc[0],
            command=(*base, *unit_words(self.name, "cu", defines, nvcc_flags(flags))),
            server=(*base, *unit_words(self.name, "cu", {}, nvcc_flags(of_code(flags)))),
            link=(
                *base[:4],
                "{object}",
                "{server}",
                *nvcc_flags(flags),
                "-Xlinker=--trace",
                "-o",
                "{output}",
            ),
            environment=compiler_environment(),
            source_suffix=".cu",
            version_command=(str(nvcc[0]), "--version"),
            wraps=(host[0], *_called(nvcc[0])),
            wrap_commands=tuple(
                (str(host[0]), f"-print-prog-name={name}") for name in ("cc1plus", "as", "ld")
            ),
            inspect=_inspect,
            mends=_MENDS,
        )
        words = (*base, *unit_words(self.name, "cu", {}, ()))
        loading = msgspec.structs.replace(
            made,
            command=words,
            server=words,
            inspect=None,
            unit=Unit(functools.partial(_of_machine_code, arch=arch), "1"),
        )
        return msgspec.structs.replace(made, machine_code=loading)

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Argv of the child; the GPU is counted as nvidia-smi does."""
        return (str(artifact), f"--gpu={options.gpu}")

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the child."""
        del options
        return child_environment(
            {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **set_variables(self.traits.obeyed)}
        )

    def sanitizers(self) -> tuple[Sanitizer, ...]:
        """Tools of compute-sanitizer; InadmissibleError where the program is not there."""
        from tokitai_cli.devices.sanitizers import compute_sanitizer

        return compute_sanitizer.sanitizers()


def _words(nvcc: Path, host: Path, arch: str) -> tuple[str, ...]:
    """First words of every compilation."""
    number = arch.removeprefix("sm_")
    return (
        str(nvcc),
        "-ccbin",
        str(host),
        # Else names of its temporary files, with the number of the process, are in what it makes.
        "-objtemp",
        "-std=c++17",
        "-O3",
        "-gencode",
        f"arch=compute_{number},code={arch}",
        "--expt-relaxed-constexpr",
        "-Xptxas=-v",
        f'-DTOKITAI_BUILT_FOR="{arch}"',
    )


def nvcc_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Give a spec's flags, which are written for GCC and Clang, in nvcc's form."""
    flags = [re.sub(r"^-include(?!=)", "-include=", flag) for flag in flags]
    return tuple(
        _TRANSLATED.get(flag) or (flag if _NVCC_FLAG.fullmatch(flag) else f"-Xcompiler={flag}")
        for flag in flags
    )


def _of_machine_code(request: HarnessRequest, arch: str) -> tuple[str, tuple[Fact, ...]]:
    from tokitai_cli.devices import module_unit

    return module_unit.of_cuda(request, arch)


def _inspect(artifact: Path, log: str) -> tuple[Fact, ...]:
    from tokitai_cli.devices.ptxas import ptxas_facts

    del artifact
    return ptxas_facts(log)


def _arch(options: DeviceOptions, gpus: Sequence[nvidia.Gpu]) -> str:
    """Architecture to build for: --arch, else that of the GPU, else a default."""
    present = gpus[options.gpu].arch if options.gpu < len(gpus) else ""
    if options.arch == "native":
        return present or options.arch
    if options.arch:
        match = _NVIDIA.arch.fullmatch(options.arch)
        return f"sm_{match[1]}" if match else options.arch
    return present or _DEFAULT_ARCH


def _nvcc() -> tuple[Path, str] | None:
    root = os.environ.get("CUDA_HOME", "")
    return first_program(
        [
            (f"{root}/bin/nvcc" if root else "", "CUDA_HOME"),
            ("nvcc", "PATH"),
            ("/usr/local/cuda/bin/nvcc", "/usr/local/cuda"),
        ]
    )


def _host_compiler() -> tuple[Path, str] | None:
    return first_program([(name, "PATH") for name in _HOST_COMPILERS])


def _called(nvcc: Path) -> tuple[Path, ...]:
    """Return the programs and libraries that nvcc puts together (CUDA Compiler Driver, 5.2 and 6.1)."""
    root = nvcc.resolve().parent.parent
    return (
        root / "bin" / "nvcc.profile",
        root / "bin" / "cudafe++",
        root / "bin" / "ptxas",
        root / "bin" / "fatbinary",
        root / "bin" / "nvlink",
        root / "nvvm" / "bin" / "cicc",
        root / "nvvm" / "libdevice" / "libdevice.10.bc",
        *root.glob("targets/*/lib/libcudart_static.a"),
    )
