"""Attributes and pragmas that a compiler leaves out with a warning, and that may change the meaning."""

from __future__ import annotations

import re
from pathlib import Path

from tokitai_cli.core import resources
from tokitai_cli.core.errors import BuildError, Location
from tokitai_cli.cpp import source_text
from tokitai_cli.cpp.lexing import directive_in, names_in

_WARNING = r"^(?P<file>/[^:\n]*):(?P<line>\d+):(?P<column>\d+): warning: (?P<text>.*)$"
_QUOTED = "['\u2018](?P<name>[^'\u2019]+)['\u2019]"
_ATTRIBUTE = (
    rf"unknown attribute {_QUOTED} ignored|{_QUOTED.replace('name', 'second')} "
    r"(?:scoped )?attribute(?: directive)? ignored"
)
_PRAGMA = r"unknown pragma ignored|ignoring ['\u2018]#pragma"
# They ask for speed, or bound what the compiler may assume; what a kernel computes is the same without.
_HARMLESS = """
    amdgpu_flat_work_group_size amdgpu_max_num_work_groups amdgpu_num_sgpr amdgpu_num_vgpr
    amdgpu_waves_per_eu annotate convergent device global host launch_bounds minsize nodebug
    noduplicate not_tail_called opencl_unroll_hint optnone reqd_work_group_size uninitialized
    work_group_size_hint
"""
_HARMLESS_PRAGMAS = frozenset(
    """unroll nounroll unroll_and_jam nounroll_and_jam STDC omp GCC region endregion mark message
       hd_warning_disable clang-loop clang-diagnostic clang-fp clang-force_cuda_host_device""".split()  # noqa: SIM905
)


def refuse_dropped(printed: str, compiler: str) -> None:
    """Raise BuildError for the first of them that a compiler's warnings tell of in the user's files."""
    shipped = str(resources.kernels_dir())
    for warning in re.finditer(_WARNING, printed, re.MULTILINE):
        if warning["file"].startswith(shipped):
            continue
        line = int(warning["line"])
        name = _dropped(warning["text"], Path(warning["file"]), line)
        if name:
            raise BuildError(
                f"{compiler} ignores {name}, which may change what the kernel computes",
                where=Location(Path(warning["file"]), line, int(warning["column"])),
                hint="build with clang++, like AMD's compiler, or guard it with #if",
                first_errors=(warning.group(),),
                log=printed,
            )


def _dropped(text: str, file: Path, line: int) -> str:
    """What a warning says is left out; empty where that is harmless, or it says another thing."""
    attribute = re.match(_ATTRIBUTE, text)
    if attribute is not None:
        name = attribute["name"] or attribute["second"]
        return (
            ""
            if name.rpartition("::")[2].strip("_") in _HARMLESS.split()
            else f"the attribute {name}"
        )
    if not re.match(_PRAGMA, text):
        return ""
    lines = (source_text.read(file) or b"").decode("utf-8", "replace").splitlines()
    pragma = lines[line - 1] if line <= len(lines) else text
    directive, told = directive_in(pragma)
    words = names_in(told)[:2]
    name = "-".join(words) if words[:1] == ["clang"] else "".join(words[:1])
    known = name in _HARMLESS_PRAGMAS or name.startswith(("nv_", "diag_"))
    return "" if directive == "pragma" and known else f"`{pragma.strip()}`"
