"""Which macros a compiler brings of its own, by the device that a unit is read for."""

from __future__ import annotations

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
    "HIP_DYNAMIC_SHARED(type, name)": "extern __shared__ type name[];",
}
#: What nvcc's cuda_runtime.h defines for every .cu file, before its first line.
RUNTIME = {"CUDART_VERSION": "12040", "CUDA_VERSION": "12040", "__CUDACC__": "1"}
_DEVICE_PASS = {"__HIP_DEVICE_COMPILE__": "1", "__AMDGCN__": "1", "__gfx1100__": "1"}
# No build of the tool defines them: its kernels are built by a HIP compiler, for AMD's platform.
_NEVER = ("__CUDACC_", "__CUDA_ARCH", "__HIP_PLATFORM_NV", "__SYCL", "__has_", "__cpp_")
_NEVER_WHOLE = frozenset({"__NVCC__", "__APPLE__", "_MSC_VER", "_OPENMP", "_WIN32", "_WIN64"})


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
    return frozenset(name for name in undecided if _is_compilers(name) and not _is_never(name))


def _is_compilers(name: str) -> bool:
    """Whether a name is one of those that the language, HIP or CUDA keep for themselves."""
    reserved = name.startswith("__") or (name[:1] == "_" and name[1:2].isupper())
    return reserved or name.startswith(("HIP_", "CUDA_")) or name == "NDEBUG"


def _is_never(name: str) -> bool:
    return name in _NEVER_WHOLE or name.startswith(_NEVER)
