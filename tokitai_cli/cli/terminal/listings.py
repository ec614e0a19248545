"""Each thing that a verb shows, as blocks on the right stream."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tokitai_cli.cli.terminal.run_summary import index, summary
from tokitai_cli.cli.terminal.streams import emit
from tokitai_cli.cli.terminal.styled_blocks import (
    BAD,
    DOUBTFUL,
    FAINT,
    GOOD,
    NORMAL,
    STRONG,
    Block,
    Column,
    Line,
    Table,
)
from tokitai_cli.core.errors import BuildError, TokitaiError
from tokitai_cli.core.model.audit_answer import Answer
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.diagnosis import CacheListing, Diagnosis
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.machine import Inspection
from tokitai_cli.core.model.wording import plural
from tokitai_cli.cpp.source.listing import FoundKernel, Unread

if TYPE_CHECKING:
    from tokitai_cli.cpp.source.signatures import Parameter


def show_summary(
    evidence: Evidence, files: Sequence[Path] = (), *, called: str = "", to_stderr: bool = False
) -> None:
    """Show how a run ended, whose spec is `called` so from here, and where its reports are."""
    emit(summary(evidence, files, called), sys.stderr if to_stderr else sys.stdout)


def show_index(runs: Sequence[tuple[Evidence, Sequence[Path]]]) -> None:
    """Show the runs that need a look as `show_summary` does, then one row for each run."""
    emit(index(runs), sys.stdout)


def show_answer(answer: Answer, files: Sequence[Path] = ()) -> None:
    """Show what was found in evidence: the answer, what speaks against it, tables."""
    blocks: list[Block] = [Line(answer.text, GOOD if answer.fine else BAD)]
    blocks += [
        Line(one.text, BAD if one.fault else FAINT, indent=2, label="fault:" if one.fault else "")
        for one in answer.remarks
    ]
    for grid in answer.grids:
        columns = [
            Column(
                head.removeprefix(">"), right=head.startswith(">"), wide=not head.startswith(">")
            )
            for head in grid.heads
        ]
        blocks.append(Table(columns, grid.rows))
    blocks += [Line(str(path), label="report:", indent=2) for path in files]
    emit(blocks, sys.stdout)


def show_error(error: TokitaiError, stream: TextIO | None = None) -> None:
    """Show `error: file:line:col: key: message`, then what to do about it, on stderr."""
    where = f"{error.where}: " if error.where is not None and str(error.where) else ""
    first, *more = f"{where}{error.message}".splitlines() or [""]
    blocks = [Line(first, BAD, label="error:"), *(Line(line, BAD, indent=2) for line in more)]
    if isinstance(error, BuildError):
        blocks += [Line(line, FAINT, indent=4, verbatim=True) for line in error.first_errors]
        if error.log_path is not None:
            blocks.append(Line(str(error.log_path), label="full log:", indent=2))
    if error.hint:
        blocks.append(Line(error.hint, indent=2))
    emit(blocks, sys.stderr if stream is None else stream)


def show_doctor(diagnosis: Diagnosis) -> None:
    """Show devices, facts and what is missing."""
    columns = [Column("device"), Column("class"), Column("arch"), Column("runs"), Column("builds")]
    rows = [
        [
            probe.device,
            str(probe.device_class),
            probe.arch or "-",
            "yes" if probe.available else "no",
            "yes" if probe.buildable else "no",
        ]
        for probe in diagnosis.devices
    ]
    styles = [GOOD if probe.available else DOUBTFUL for probe in diagnosis.devices]
    blocks: list[Block] = [Table(columns, rows, styles)]
    facts = [
        [probe.device, fact.name, fact.value, fact.source]
        for probe in diagnosis.devices
        for fact in probe.facts
    ]
    facts += [["-", fact.name, fact.value, fact.source] for fact in diagnosis.facts]
    if facts:
        blocks += [
            Line(""),
            Table(
                [
                    Column("device"),
                    Column("fact"),
                    Column("value", wide=True),
                    Column("read from", wide=True, spare=1),
                ],
                facts,
            ),
        ]
    lacks = [
        (probe.device, probe.missing, probe.hint) for probe in diagnosis.devices if probe.missing
    ]
    lacks += [(lack.name, "missing", lack.hint) for lack in diagnosis.lacks]
    for name, missing, hint in lacks:
        blocks += [Line(""), Line(f"{name}: {missing}", DOUBTFUL)]
        blocks += [Line(hint, indent=2)] if hint else []
    emit(blocks, sys.stdout)


def show_ops(specs: Iterable[LoadedSpec]) -> None:
    """Show one row per variant: op, variant, parameters with their defaults, title."""
    rows = []
    for loaded in specs:
        spec = loaded.spec
        params = " ".join(f"{name}={param.default}" for name, param in spec.params.items())
        for name, variant in spec.variants.items():
            rows.append([spec.op, name, params, variant.title or spec.title])
    columns = [Column("op"), Column("variant"), Column("parameters", wide=True)]
    columns += [Column("title", wide=True, spare=1)]
    emit([Table(columns, rows)], sys.stdout)


def show_kernels(
    kernels: Sequence[FoundKernel], unread: Sequence[Unread], written: Sequence[Path]
) -> None:
    """Show one row per kernel: place, signature, and why it has no spec or does not run."""
    run = any(one.ended is not None for one in kernels)
    rows = [
        [
            f"{_from_here(one.file)}:{one.line}",
            one.instance,
            ", ".join(_typed(parameter) for parameter in one.parameters),
            "; ".join(one.reasons) or "yes",
            *([one.ended or "yes"] if one.ended is not None else [""] if run else []),
        ]
        for one in kernels
    ]
    columns = [Column("place", wide=True), Column("kernel", wide=True)]
    columns += [Column("parameters", wide=True, spare=1), Column("spec possible", wide=True)]
    columns += [Column("runs to its end", wide=True)] if run else []
    styles = [NORMAL if one.bindable and not one.ended else DOUBTFUL for one in kernels]
    bound = sum(one.bindable for one in kernels)
    blocks: list[Block] = [Table(columns, rows, styles)] if rows else []
    ran = f", {sum(one.ended == '' for one in kernels)} run to their end" if run else ""
    blocks.append(
        Line(f"{plural(len(kernels), 'kernel')} found; a spec can be written for {bound}{ran}")
    )
    for missing in unread:
        text = f"{_from_here(missing.file)}: {missing.reason}"
        blocks.append(Line(text, DOUBTFUL, label="not read:"))
    blocks += [Line(str(file), label="written:") for file in written]
    emit(blocks, sys.stdout)


def _from_here(file: str) -> str:
    """A file below the working folder by its path from there."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def show_machine_code(inspection: Inspection) -> None:
    """Show facts and listing of one kernel, or a row for each of several, and what can be executed."""
    blocks: list[Block] = []
    if len(inspection.kernels) == 1:
        (kernel,) = inspection.kernels
        blocks += [Line(kernel.demangled, STRONG)]
        blocks += [Line(fact.value, label=f"{fact.name}:", indent=2) for fact in kernel.facts]
        if kernel.refused:
            blocks.append(
                Line(", ".join(kernel.refused), DOUBTFUL, label="cannot be executed:", indent=2)
            )
        blocks += [
            Line(line, FAINT if line.startswith(";") else NORMAL, verbatim=True)
            for line in kernel.listing
        ]
    else:
        told = [{fact.name: fact.value for fact in one.facts} for one in inspection.kernels]
        columns = [Column("kernel", wide=True), Column("instructions", right=True)]
        columns += [Column(head, right=True) for head in _MACHINE]
        columns += [Column("cannot be executed", wide=True, spare=1)]
        rows = [
            [
                *(one.demangled, str(one.instructions)),
                *(facts[name] for name in _MACHINE.values()),
                ", ".join(one.refused),
            ]
            for one, facts in zip(inspection.kernels, told, strict=True)
        ]
        blocks.append(Table(columns, rows))
    runs = sum(not one.refused for one in inspection.kernels)
    total = sum(one.instructions for one in inspection.kernels)
    unknown = sum(one.unknown for one in inspection.kernels)
    share = f" ({100 * runs / len(inspection.kernels):.1f}%)" if inspection.kernels else ""
    blocks += [
        Line(f"{inspection.arch} of {', '.join(inspection.targets)}", label="processor:"),
        Line(
            f"{total} of {plural(len(inspection.names), 'name')} in "
            f"{plural(len(inspection.kernels), 'kernel')}, {unknown} not decoded",
            label="instructions:",
        ),
        Line(
            f"{runs} of {len(inspection.kernels)}{share}",
            label="kernels that the gfx device can execute:",
        ),
    ]
    emit(blocks, sys.stdout)


# Columns of a row of machine code, and the facts in them.
_MACHINE = {
    "VGPRs": "vector registers",
    "SGPRs": "scalar registers",
    "shared": "shared bytes",
    "scratch": "scratch bytes per thread",
    "spills": "spilled vector registers",
    "wave": "wave size",
}


def _typed(one: Parameter) -> str:
    text = f"{'const ' if one.const else ''}{one.type}{'*' * one.pointers} {one.name}"
    return f"{text} = {one.default}" if one.default else text


def show_cache(listing: CacheListing) -> None:
    """Show where the build cache is and what it holds, sizes in MiB."""
    entries = listing.entries
    total = f"{plural(len(entries), 'artifact')}, {listing.nbytes / 2**20:.1f} MiB in all"
    blocks: list[Block] = [Line(listing.folder, label="folder:"), Line(total, label="holds:")]
    if entries:
        headings = ("key", "device", "source", "built", "MiB", "state")
        rows = [
            [
                entry.key[:12],
                entry.device,
                entry.source,
                datetime.fromtimestamp(entry.built, UTC).strftime("%Y-%m-%d %H:%M"),
                f"{entry.nbytes / 2**20:.1f}",
                entry.damage or "good",
            ]
            for entry in entries
        ]
        spare = {"built": 1, "device": 2}
        columns = [
            Column(word, right=word == "MiB", wide=word == "state", spare=spare.get(word, 0))
            for word in headings
        ]
        styles = [DOUBTFUL if entry.damage else NORMAL for entry in entries]
        blocks.append(Table(columns, rows, styles))
    emit(blocks, sys.stdout)


def show_cleared(nbytes: int) -> None:
    """Say how much the cache gave back."""
    emit([Line(f"{nbytes / 2**20:.1f} MiB freed")], sys.stdout)
