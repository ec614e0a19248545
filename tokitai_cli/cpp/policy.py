"""Which macros a compiler brings of its own, by the device that a unit is read for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

#: Files that nvcc is given.
CUDA = frozenset({".cu", ".cuh"})
_COMMON = {
    "TOKITAI": "1",
    "__HIPCC__": "1",
    "__HIP__": "1",
    "__HIP_PLATFORM_AMD__": "1",
    "__HIP_PLATFORM_HCC__": "1",
    "__cplusplus": "201703L",
    "__GNUC__": "12",
    "__linux__": "1",
    "__x86_64__": "1",
    "__restrict": "__restrict__",
}
#: What nvcc's cuda_runtime.h defines for every .cu file, before its first line.
RUNTIME = {"CUDART_VERSION": "12040", "CUDA_VERSION": "12040", "__CUDACC__": "1"}
_DEVICE_PASS = {"__HIP_DEVICE_COMPILE__": "1", "__AMDGCN__": "1", "__gfx1100__": "1"}
_COMPILERS = re.compile(r"__\w*|_[A-Z]\w*|HIP_\w*|CUDA_\w*|NDEBUG")
# No build of the tool defines them: its kernels are built by a HIP compiler, for AMD's platform.
_NEVER = re.compile(
    r"__CUDACC_\w*|__CUDA_ARCH\w*|__NVCC__|__HIP_PLATFORM_NV\w+|__SYCL\w*|__APPLE__|_MSC_VER|_OPENMP"
    r"|_WIN(?:32|64)|__has_\w+|__cpp_\w+"
)


def host_pass(cuda: bool, defines: Mapping[str, str] | None = None) -> dict[str, str]:
    """Macros of the cpu device and of a GPU compiler's pass over host code.

    cuda: whether the source is one that nvcc would be given. defines: of the command line.
    """
    own = {name: value or "1" for name, value in (defines or {}).items()}
    return _COMMON | (RUNTIME if cuda else {}) | own


def device_pass(cuda: bool, defines: Mapping[str, str] | None = None) -> dict[str, str]:
    """Macros of a GPU compiler's pass over device code."""
    return _DEVICE_PASS | host_pass(cuda, defines)


class Pass(NamedTuple):
    """One pass of a compiler over a source."""

    #: When a compiler of the unit that is made of it is in that pass; empty for all else.
    condition: str
    #: Macros that are put in.
    defines: Mapping[str, str]
    #: Macros of the compiler's own, which conditions may ask for.
    known: Mapping[str, str]


def passes_of(
    device: str, arch: str, cuda: bool, defines: Mapping[str, str], branch: Mapping[str, str]
) -> list[Pass]:
    """The passes in which a device's compiler reads a source, the last of them the host's.

    branch: macros of the GPU's compiler that the host's takes for its own, see `Recipe`.
    """
    both = host_pass(cuda, defines)
    if device == "cuda":
        both = {
            name: value for name, value in both.items() if not name.startswith("__HIP_PLATFORM")
        }
        both |= {"__CUDACC__": "1", "__NVCC__": "1", "__HIP_PLATFORM_NVIDIA__": "1"}
        number = "".join(letter for letter in arch if letter.isdigit())
        gpu = {"__CUDA_ARCH__": f"{number}0"} if number else {"__CUDA_ARCH__": "700"}
        return [Pass("defined(__CUDA_ARCH__)", both, gpu), Pass("", both, {})]
    own = {f"__{arch.partition(':')[0]}__": "1"} if arch.startswith("gfx") else {}
    known = branch or (_DEVICE_PASS | own)
    return [Pass("defined(__HIP_DEVICE_COMPILE__)", both, known), Pass("", both, {})]


def open_names(undecided: frozenset[str]) -> frozenset[str]:
    """Names of conditions that some compiler may define, so that a unit may read otherwise there."""
    return frozenset(
        name for name in undecided if _COMPILERS.fullmatch(name) and not _NEVER.fullmatch(name)
    )
