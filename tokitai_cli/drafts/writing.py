"""Spec, formula and README for one kernel of a source, written as a draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.core.errors import TokitaiError, UsageError
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.devices import triton_metadata
from tokitai_cli.drafts.compiled import CompiledWriter, Given
from tokitai_cli.drafts.draft import Draft
from tokitai_cli.drafts.like import TemplateOp
from tokitai_cli.drafts.search import drafts_of, require_folders, schema_beside, write_new


class Drafted(msgspec.Struct, frozen=True):
    """What was drafted."""

    #: Text of spec.yaml.
    spec: str
    #: Text of formula.py.
    formula: str
    #: Options of `verify` that run it without a GPU.
    device: str
    #: The kernel, as the spec names it.
    instance: str


def new(
    source: Path,
    folder: Path,
    kernel: str,
    like: str,
    include: Sequence[Path],
    defines: Mapping[str, str],
) -> tuple[Drafted, list[Path], str]:
    """Write the draft of a kernel, of a source or compiled by Triton, into `folder`.

    Returns what was drafted, the files, and the README's line.

    kernel: its name; empty where the source has one alone. A README that exists already is left as it
    is. Raises UsageError where the kernel is not clear or cannot be bound, or a file exists already.
    """
    if triton_metadata.is_compiled(source):
        return _of_machine_code(source, folder)
    if source.is_dir():
        hint = f"name a source; `tokitai find {source}` lists the kernels below it"
        raise UsageError(f"{source} is a folder", hint=hint)
    require_folders(include)
    model = TemplateOp(like) if like else None
    found = drafts_of(source, include, folder.resolve(), model, defines, room=False)
    if isinstance(found, Unread) and found.fault:
        raise TokitaiError(f"{found.file}: {found.reason}")
    if isinstance(found, Unread):
        raise UsageError(f"{found.file} {found.reason}", hint="name a source with kernels")
    draft = _chosen(source, *found, kernel)
    if draft.fault is not None:
        raise TokitaiError(f"{draft.kernel.name}: {draft.reasons[0]}")
    if draft.reasons:
        raise UsageError(
            "\n".join([f"{draft.kernel.name} cannot be described by a spec", *draft.reasons]),
            hint="give it parameters that a spec can pass, or name another kernel",
        )
    made = Drafted(draft.spec, draft.formula, "--suite quick --device cpu", draft.instance)
    return _written(draft.kernel.name, made, folder)


def _of_machine_code(source: Path, folder: Path) -> tuple[Drafted, list[Path], str]:
    kernel = triton_metadata.read(source)
    writer = CompiledWriter(kernel, folder.resolve(), Given())
    device = "gfx" if kernel.arch.startswith("gfx") else "cuda"
    made = Drafted(
        writer.spec(), writer.formula(), f"--device {device} --arch {kernel.arch}", kernel.name
    )
    return _written(kernel.name, made, folder)


def _written(name: str, draft: Drafted, folder: Path) -> tuple[Drafted, list[Path], str]:
    line = (
        f"{name}: `tokitai verify {folder / 'spec.yaml'} {draft.device}` "
        f"verifies it against formula.py."
    )
    place = folder / "spec.yaml"
    texts = {place: draft.spec, folder / "formula.py": draft.formula, **schema_beside(place)}
    readme = folder / "README.md"
    if not readme.exists():
        texts[readme] = f"{line.replace(str(folder / 'spec.yaml'), './spec.yaml')}\n"
    write_new(texts)
    return draft, list(texts), "" if readme in texts else line


def _chosen(source: Path, drafts: Sequence[Draft], missed: Sequence[Unread], kernel: str) -> Draft:
    fitting = [
        one
        for one in drafts
        if not kernel
        or kernel in {one.kernel.name, one.kernel.qualified, f"{one.kernel.name}:{one.kernel.line}"}
    ]
    if len(fitting) == 1:
        return fitting[0]
    listed = [f"{one.kernel.file.name}:{one.kernel.line}: {one.kernel.text}" for one in drafts]
    listed += [f"{Path(one.file).name}: {one.reason}" for one in missed]
    if not drafts:
        hint = "a kernel is a __global__ function with a body; -I names folders of headers"
        raise UsageError("\n".join([f"{source} has no kernel", *listed]), hint=hint)
    if not fitting:
        raise UsageError("\n".join([f"{source} has no kernel `{kernel}`; it has", *listed]),
                         hint="name one of these: --kernel NAME")  # fmt: skip
    many = f"{source} has {len(drafts)} kernels" if not kernel else f"several are named `{kernel}`"
    hint = "name one: --kernel NAME" + (", or NAME:LINE" if kernel else "")
    raise UsageError("\n".join([many, *listed]), hint=hint)
