"""The cuda device: HIP sources on NVIDIA GPUs, built by nvcc over the headers of kernels/cuda."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokitai_cli import resources
from tokitai_cli.devices import _nvidia
from tokitai_cli.devices._environment import (
    child_environment,
    compiler_environment,
    dropped_facts,
)
from tokitai_cli.devices._find import first_program
from tokitai_cli.devices._words import (
    NOT_MACHINE_CODE,
    SHARED_UNGUARDED,
    define_flags,
    set_variables,
    variable_facts,
)
from tokitai_cli.errors import BuildError, UsageError
from tokitai_cli.model.device import DeviceClass, DeviceOptions, Fact, Probe, Recipe

_DEFAULT_ARCH = "sm_90"
_ARCH = re.compile(r"(?:sm_)?([1-9]\d{1,2}[af]?)")
_HOST_COMPILERS = ("g++", "c++", "clang++")
_OBEYED = (_nvidia.VISIBLE,)
_WARP_SIZE = 32
_MEND = "run on a machine with an NVIDIA GPU, its driver and the CUDA toolkit (nvcc)"
_NO_GPU = "no NVIDIA GPU (looked at nvidia-smi, /proc/driver/nvidia, /dev/nvidia0)"
_NO_NVCC = "no nvcc (looked in CUDA_HOME, PATH, /usr/local/cuda)"
_NO_HOST = "no C++ compiler for nvcc (looked for g++, c++, clang++)"
# What nvcc takes by itself; every other option of a spec is one of GCC or Clang, for the host's code.
_NVCC_FLAG = re.compile(
    r"-(?:[DUIO].*|std=.*|-.*|use_fast_math|fmad=.*|ftz=.*|prec-.*=.*|lineinfo|G)"
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
    device_class: DeviceClass = DeviceClass.NVIDIA_GPU
    non_claims: tuple[str, ...] = (
        "not AMD device evidence",
        NOT_MACHINE_CODE,
        SHARED_UNGUARDED,
    )

    def probe(self, options: DeviceOptions) -> Probe:
        """Look for the driver, the GPUs, nvcc and a host compiler."""
        gpus, how = _nvidia.gpus()
        nvcc, host = _nvcc(), _host_compiler()
        facts = [*dropped_facts(), *variable_facts(_OBEYED)]
        facts += [
            Fact("gpu", f"{gpu.index}: {gpu.name}, {gpu.arch or 'architecture not told'}", how)
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
        wrong = _wrong_arch(options)
        no_gpu = f"no GPU {options.gpu}: there are {len(gpus)}" if gpus else _NO_GPU
        lacks = [
            text
            for missing, text in (
                (bool(wrong), wrong),
                (chosen is None, no_gpu),
                (nvcc is None, _NO_NVCC),
                (host is None, _NO_HOST),
            )
            if missing
        ]
        buildable = nvcc is not None and host is not None
        only = "; --build-only compiles here" if buildable and chosen is None else ""
        return Probe(
            self.name,
            self.device_class,
            available=not lacks,
            buildable=buildable,
            arch=_arch(options, gpus),
            facts=tuple(facts),
            missing=f"CUDA is unavailable; {', '.join(lacks)}; NVIDIA device evidence remains "
            "inadmissible"
            if lacks
            else "",
            mend=f"{_MEND}{only}" if lacks else "",
        )

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Recipe for nvcc; raises BuildError where it or its host compiler is not there.

        Code for the one architecture is made and no PTX, so that what runs is what was built.
        """
        nvcc, host = _nvcc(), _host_compiler()
        if nvcc is None or host is None:
            raise BuildError(_NO_NVCC if nvcc is None else _NO_HOST, mend=_MEND)
        if wrong := _wrong_arch(options):
            raise UsageError(wrong, mend="give one such as sm_90, or native")
        arch = _arch(options, _nvidia.gpus()[0])
        if not _ARCH.fullmatch(arch):
            raise BuildError(
                f"--arch {options.arch}: there is no GPU to take it from",
                mend="name it: --arch sm_90",
            )
        number = arch.removeprefix("sm_")
        kernels = resources.kernels_dir()
        return Recipe(
            device=self.name,
            arch=arch,
            compiler=nvcc[0],
            command=(
                str(nvcc[0]),
                "-ccbin",
                str(host[0]),
                "-std=c++17",
                "-O3",
                "-gencode",
                f"arch=compute_{number},code={arch}",
                # Line numbers for tools that watch the kernel; the machine code stays as it is.
                "-lineinfo",
                "--expt-relaxed-constexpr",
                "-Xptxas=-v",
                f'-DTOKITAI_BUILT_FOR="{arch}"',
                f"-I{kernels / 'cuda'}",
                f"-I{kernels / 'harness'}",
                *define_flags(defines),
                *nvcc_flags(flags),
                "-MD",
                "-MF",
                "{depfile}",
                "-x",
                "cu",
                "{source}",
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

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Argv of the child; the GPU is counted as nvidia-smi does."""
        return (str(artifact), f"--gpu={options.gpu}")

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the child."""
        del options
        return child_environment({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **set_variables(_OBEYED)})


def nvcc_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Give a spec's flags, which are written for GCC and Clang, in nvcc's form."""
    return tuple(
        _TRANSLATED.get(flag) or (flag if _NVCC_FLAG.fullmatch(flag) else f"-Xcompiler={flag}")
        for flag in flags
    )


def _inspect(artifact: Path, log: str) -> tuple[Fact, ...]:
    from tokitai_cli.devices._code_object import ptxas_facts

    del artifact
    return ptxas_facts(log)


def _arch(options: DeviceOptions, gpus: Sequence[_nvidia.Gpu]) -> str:
    """Architecture to build for: --arch, else that of the GPU, else a default."""
    present = gpus[options.gpu].arch if options.gpu < len(gpus) else ""
    if options.arch == "native":
        return present or options.arch
    if options.arch:
        match = _ARCH.fullmatch(options.arch)
        return f"sm_{match[1]}" if match else options.arch
    return present or _DEFAULT_ARCH


def _wrong_arch(options: DeviceOptions) -> str:
    if not options.arch or options.arch == "native" or _ARCH.fullmatch(options.arch):
        return ""
    return f"--arch {options.arch}: not an architecture of NVIDIA GPUs"


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
