"""What a device cannot run at all, found in the source before a compiler stumbles over it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tokitai_cli.build.ptx import first_instruction
from tokitai_cli.core import resources
from tokitai_cli.core.errors import BuildError, Location
from tokitai_cli.core.model.device import ASSEMBLY, TRAITS, UNBOUND_TEXTURE
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.cpp.lexing import blank, called_names, directive_in


class Finding(msgspec.Struct, frozen=True):
    """Something that the device cannot run.

    conditional: it stands inside an #if, or the compiler may pass over it.
    """

    name: str
    what: str
    line: int
    conditional: bool
    #: Of what was taken out of a program, the file; empty for the source itself.
    file: str = ""


_LONGEST = 200  # lines of a statement
_DEEPER = {"if": 1, "ifdef": 1, "ifndef": 1, "endif": -1}  # by each directive


def scan(text: str, device: str, *, textures: bool = False) -> list[Finding]:
    """Everything in a kernel source that `device` cannot run, in order of lines.

    textures: the spec binds those of its kernels.
    """
    traits = TRAITS[device]
    every = {**traits.refused, **traits.explained}
    patterns = {one: what for one, what in every.items() if not textures or what != UNBOUND_TEXTURE}
    if not any(re.search(pattern, text) for pattern in patterns):
        return []
    plain = blank(text)
    ours = _defined(resources.kernels_dir() / traits.headers)
    found: dict[tuple[str, int, str], Finding] = {}
    depth = -1 if _has_include_guard(plain) else 0
    whole_lines = text.splitlines()
    file, number = "", 0
    for at, line in enumerate(plain.splitlines(), start=1):
        number += 1
        directive, told = directive_in(line)
        count = told.partition(" ")[0]
        if directive == "line" and count.isdigit():  # of what was taken out of a program
            path = whole_lines[at - 1].partition('"')[2].partition('"')[0]
            file, number = path or file, int(count) - 1
            continue
        if directive in _DEEPER:
            depth += _DEEPER[directive]
            continue
        # An #include's path is no literal to the preprocessor, but was blanked as one.
        whole = whole_lines[at - 1] if directive == "include" else line
        for pattern, what in patterns.items():
            match = next((one for one in re.finditer(pattern, whole) if one[0] not in ours), None)
            if match and not any(key[:2] == (file, number) for key in found):
                name = match.group()
                if what == ASSEMBLY:
                    name += _instruction(whole_lines, at, match.start())
                passed_over = depth > 0 or pattern in traits.explained
                found[file, number, name] = Finding(name, what, number, passed_over, file)
    return list(found.values())


def _instruction(lines: list[str], number: int, column: int) -> str:
    """The first instruction of an `asm` that has no translation, behind a blank."""
    text = "\n".join([lines[number - 1][column:], *lines[number : number + _LONGEST]])
    first = first_instruction(text)
    return f" {first}" if first else ""


@functools.cache
def _defined(headers: Path) -> frozenset[str]:
    """Builtins of AMD's compiler that a device's own headers define."""
    file = headers / "tokitai_host" / "builtins.hpp"
    text = file.read_text("utf-8") if file.is_file() else ""
    return frozenset(one for one in called_names(text) if one.startswith("__builtin_amdgcn_"))


def refuse_cuda(source: Path, texts: Iterable[str], device: str) -> None:
    """Raise BuildError for a .cu file without HIP where the device's compiler knows nothing else."""
    if not TRAITS[device].hip_only or source.suffix != ".cu":
        return
    if not any(re.search(r"\bhip|\bHIP_", text) for text in texts):
        raise BuildError(
            f"{source.name} is CUDA only: it includes no HIP header, which the {device} device needs",
            where=Location(source),
            hint="`hipify-perl` turns CUDA into HIP; or choose --device cuda or cpu",
            first_errors=(f"{source}:1: no HIP header in a .cu file",),
        )


def refuse_textures(request: HarnessRequest, device: str) -> None:
    """Raise BuildError where a kernel is handed textures on a device whose harness makes none."""
    bound = [one.expr for one in request.kernels if one.textures]
    if bound and device != "cpu":
        raise BuildError(
            f"the {device} device cannot run {bound[0]}: it fetches from a texture of the spec",
            where=Location(request.source),
            hint="textures are bound on the cpu device only: choose --device cpu",
            first_errors=(f"{request.source}: a texture",),
        )


def refuse(request: HarnessRequest, text: str, device: str) -> list[Finding]:
    """Raise BuildError for what stands outside of every #if; return the rest.

    What stands inside one may be left out by the preprocessor, so it only explains a build that
    fails.
    """
    source = request.source
    findings = scan(text, device, textures=any(one.textures for one in request.kernels))
    for finding in findings:
        if not finding.conditional:
            file = Path(finding.file) if finding.file else source
            raise BuildError(
                f"the {device} device cannot run {finding.name}: {finding.what}",
                where=Location(file, finding.line),
                hint=(
                    f"guard it with #if, or choose a device that supports it; {device} runs "
                    "plain HIP C++"
                ),
                first_errors=(f"{file}:{finding.line}: {finding.what}: {finding.name}",),
            )
    return findings


def _has_include_guard(plain: str) -> bool:
    """Whether the text begins as a header does: `#ifndef NAME` and `#define NAME`."""
    lines = (line for line in plain.splitlines() if line.strip())
    (first, name), (second, told) = (directive_in(next(lines, "")) for _ in range(2))
    return (first, second) == ("ifndef", "define") and told.split()[:1] == [name]
