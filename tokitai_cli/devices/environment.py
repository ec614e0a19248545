"""The environments of compilers and kernels: what they need, and nothing that changes them quietly."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from tokitai_cli.core.model.device import Fact

_KEPT = ("HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR")
_FIXED = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
# Variables by which GCC, Clang, nvcc and hipcc take options or search other folders.
_CHANGES_BUILDS = re.compile(
    r"^(?:CPATH|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|OBJC_INCLUDE_PATH|LIBRARY_PATH|COMPILER_PATH"
    r"|GCC_EXEC_PREFIX|GCC_COMPARE_DEBUG|DEPENDENCIES_OUTPUT|SUNPRO_DEPENDENCIES|CCC_OVERRIDE_OPTIONS"
    r"|CCC_ADD_ARGS|CL|_CL_|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|LD_PRELOAD|LD_AUDIT|SYSROOT|CLANG_CONFIG.*"
    r"|NVCC_.*|HIPCC_.*|HIP_CLANG_PATH|HIP_DEVICE_LIB_PATH|DEVICE_LIB_PATH|HIP_COMPILER|HIP_RUNTIME"
    r"|HIP_PLATFORM|ZIG_(?!GLOBAL_CACHE_DIR).*)$"
)


def compiler_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Whole environment of a compiler; `more` is added."""
    kept = {name: os.environ[name] for name in _KEPT if os.environ.get(name)}
    kept.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {**kept, **_FIXED, **(more or {})}


def child_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Whole environment of a process that runs kernels."""
    return compiler_environment(more)


def dropped_facts() -> tuple[Fact, ...]:
    """Return a fact for every variable that would have changed a build and was dropped."""
    return tuple(
        Fact(f"environment.{name}", "set, and dropped for builds", "environment")
        for name in sorted(os.environ)
        if _CHANGES_BUILDS.match(name)
    )
