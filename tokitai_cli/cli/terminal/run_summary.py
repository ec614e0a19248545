"""A run in a screenful: tallies, the refuted cases in detail, the claims that it supports."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from tokitai_cli.cli.terminal.styled_blocks import (
    BAD,
    DOUBTFUL,
    FAINT,
    GOOD,
    Block,
    Column,
    Line,
    Table,
)
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.judged import CheckRecord, ElementRecord, Number, OutputRecord
from tokitai_cli.core.model.verdict import Verdict, worst
from tokitai_cli.core.model.wording import counts_text, from_folder, number, plural, shape_text
from tokitai_cli.evidence import queries

MOST_DETAILED = 3
MOST_ERROR_LINES = 5
MOST_NOT_COVERED = 3
_GOOD = (Verdict.VERIFIED, Verdict.BUILT)
_DOUBTFUL = (
    Verdict.INCONCLUSIVE,
    Verdict.INADMISSIBLE,
    Verdict.NOT_RUN,
    Verdict.EXPECTED_FAILURE,
    Verdict.VACUOUS,
)

# A sanitizer may report each thread of a fault; the report has them all.
FINDINGS_SHOWN = 5


def verdict_style(verdict: Verdict) -> str:
    """Style of a verdict; whatever is neither good nor doubtful is bad."""
    return GOOD if verdict in _GOOD else DOUBTFUL if verdict in _DOUBTFUL else BAD


def summary(evidence: Evidence, files: Sequence[Path], called: str = "") -> list[Block]:
    """How a run ended, whose spec is `called` so from here."""
    cases = queries.cases(evidence)
    told = queries.troubled(cases)
    blocks: list[Block] = []
    if any(case.verdict is not Verdict.INADMISSIBLE for case in cases):
        blocks += _table(queries.tallies(cases))
    nothing_ran = evidence.verdict is Verdict.INADMISSIBLE  # which the reason tells for all cases
    detailed = [] if nothing_ran else queries.telling(told)[:MOST_DETAILED]
    for case in detailed:
        blocks += _detail(evidence, case, called)
    for case in [one for one in evidence.watched if queries.decides(one)][:MOST_DETAILED]:
        blocks += _watched(case, called)
    for smallest in queries.smallest_failing(cases):
        where = shape_text(smallest.case.shape)
        text = f"{where}, of {smallest.case.variant} on {smallest.case.device} ({smallest.words})"
        blocks.append(Line(text, label="smallest shape that fails:"))
    more = len(told) - len(detailed)
    if more and not nothing_ran:
        words = "more such case is" if more == 1 else "more such cases are"
        blocks.append(Line(f"{more} {words} in the evidence", FAINT))
    if evidence.left_out:
        pairs = len(evidence.left_out)
        text = "pair of variant and shape" if pairs == 1 else "pairs of variant and shape"
        blocks.append(Line(f"skipped: {pairs} {text} that the spec excludes", FAINT))
    counts = counts_text(evidence.counts)
    headline = f"{evidence.name}: {evidence.verdict}" + (f" ({counts})" if counts else "")
    blocks.append(Line(headline, verdict_style(evidence.verdict)))
    if queries.decisive(evidence) not in {case.key for case in detailed}:
        blocks.append(Line(from_folder(queries.reason(evidence), called), indent=2))
    return [*blocks, *_below(evidence, files)]


def _below(evidence: Evidence, files: Sequence[Path]) -> list[Block]:
    """What stands under the headline: memory, claims, guesses, notes and files."""
    blocks: list[Block] = []
    if watched := queries.watch_words(evidence):
        blocks.append(Line(watched, label="memory and races:", indent=2))
    supported = ", ".join(gate.name for gate in evidence.claims if gate.supported)
    blocks.append(Line(supported or "none", label="claims:", indent=2))
    if marked := len(queries.unconfirmed(evidence)):
        text = f"{plural(marked, 'guess')} not confirmed (lines marked `# guess:`)"
        blocks.append(Line(text, DOUBTFUL, label="guesses:", indent=2))
    left = queries.not_covered(evidence)
    blocks += [Line(text, FAINT, label="note:", indent=2) for text in left[:MOST_NOT_COVERED]]
    if len(left) > MOST_NOT_COVERED:
        text = f"{len(left) - MOST_NOT_COVERED} more in the report"
        blocks.append(Line(text, FAINT, label="note:", indent=2))
    blocks += [Line(str(path), label="report:", indent=2) for path in files]
    return blocks


def index(runs: Sequence[tuple[Evidence, Sequence[Path]]]) -> list[Block]:
    """Blocks for several runs: a summary of each that is not fine, then a row for each."""
    blocks: list[Block] = []
    for evidence, files in runs:
        if evidence.verdict not in queries.FINE:
            blocks += [*summary(evidence, files), Line("")]
    columns = [Column("op"), Column("verdict"), Column("cases", wide=True, spare=1)]
    columns += [Column("evidence", wide=True, spare=2)]
    rows = [
        [
            evidence.name,
            str(evidence.verdict),
            counts_text(evidence.counts),
            str(files[0]) if files else "-",
        ]
        for evidence, files in runs
    ]
    styles = [verdict_style(evidence.verdict) for evidence, _ in runs]
    blocks.append(Table(columns, rows, styles))
    verdict = worst(evidence.verdict for evidence, _ in runs)
    blocks.append(Line(f"all: {verdict} ({plural(len(runs), 'op')})", verdict_style(verdict)))
    return blocks


def _table(tallies: Sequence[queries.Tally]) -> list[Block]:
    several = len({tally.device for tally in tallies}) > 1
    columns = [Column("variant"), Column("profile")]
    columns += [Column("device")] if several else []
    columns += [
        Column("shape", wide=True),
        Column("verdict"),
        Column("worst check", wide=True, spare=1),
        Column("value", right=True, spare=2),
        Column("limit", right=True, spare=3),
        Column("max ulp", right=True, spare=4),
    ]
    rows = [_row(tally, several=several) for tally in tallies]
    styles = [verdict_style(tally.verdict) for tally in tallies]
    return _without_equal_columns(Table(columns, rows, styles))


def _without_equal_columns(table: Table) -> list[Block]:
    """A table whose columns with one value in all rows, where there are several, stand above it."""
    if len(table.rows) < 2:
        return [table]
    equal = [
        number for number, cells in enumerate(zip(*table.rows, strict=True)) if len(set(cells)) == 1
    ]
    shown = [number for number in range(len(table.columns)) if number not in equal]
    if not equal or len(shown) < 2:
        return [table]
    same = ", ".join(f"{table.columns[number].heading} {table.rows[0][number]}" for number in equal)
    rows = [[row[number] for number in shown] for row in table.rows]
    columns = [table.columns[number] for number in shown]
    return [Line(same, label="all cases:"), Table(columns, rows, table.styles)]


def _row(tally: queries.Tally, *, several: bool) -> list[str]:
    shape = shape_text(tally.worst.case.shape)
    if tally.shapes > 1:
        shape = f"{tally.shapes} shapes, worst {shape}"
    output, decided = tally.worst.output, queries.decision(tally.worst)
    cells = [tally.variant, tally.profile] + ([tally.device] if several else [])
    cells += [shape, str(tally.verdict)]
    if decided is None:
        cells += ["-", "-", "-"]
    else:
        cells += [decided.words, _beside(decided.value, decided.limit), number(decided.limit)]
    metrics = None if output is None else output.metrics
    return [*cells, "-" if metrics is None else number(metrics.max_ulp, 4)]


def _beside(value: Number | None, limit: Number | None) -> str:
    """A value with so many digits that one below its limit does not read as the limit."""
    texts = (number(value, digits) for digits in (4, 6, 9))
    return next((text for text in texts if text != number(limit)), number(value, 9))


def from_here(rerun: str, path: str) -> str:
    """A command of evidence, which names the spec at an absolute `path` by its file's name alone."""
    words = shlex.split(rerun)
    if path.startswith("/") and words[2:3] == [Path(path).name]:
        return shlex.join([*words[:2], path, *words[3:]])
    return rerun


def _detail(evidence: Evidence, case: CaseRecord, called: str) -> Iterator[Block]:
    yield Line(f"{case.verdict}: {case.id} on {case.device}", verdict_style(case.verdict))
    yield Line(from_folder(case.reason, called), indent=2)
    for output in case.outputs:
        yield from _output(output, case.reason, named=len(case.outputs) > 1)
    yield from _findings(case)
    if case.verdict is Verdict.BUILD_FAILED:
        yield from _compiler(evidence, case, called)
    if case.reproduced is not None:
        text = "the same result" if case.reproduced else "a different result"
        yield Line(text, label="run again in a new process:", indent=2)
    if case.rerun:
        yield Line(from_here(case.rerun, called), label="run it again:", indent=2, verbatim=True)
    if case.debug:
        yield Line(case.debug, label="debug it:", indent=2, verbatim=True)
    for array in case.saved_arrays:
        yield Line(array.file, label="saved:", indent=2)


def _watched(case: CaseRecord, called: str) -> Iterator[Block]:
    """A case whose numbers nothing compared, and in which the watch found something."""
    text = f"{case.verdict}: {case.id}, memory and races on {case.device}"
    yield Line(text, verdict_style(case.verdict))
    yield Line(from_folder(case.reason, called), indent=2)
    yield from _findings(case)
    yield Line(from_here(case.rerun, called), label="run it again:", indent=2, verbatim=True)


def _compiler(evidence: Evidence, case: CaseRecord, called: str) -> Iterator[Block]:
    """The first errors of the compiler, and where the rest is."""
    build = evidence.builds.get(case.build)
    for text in build.failed[:MOST_ERROR_LINES] if build is not None else ():
        yield Line(from_folder(text, called), FAINT, indent=4, verbatim=True)
    if case.build in evidence.volatile.build_logs:
        yield Line(evidence.volatile.build_logs[case.build], label="full log:", indent=2)


def _findings(case: CaseRecord) -> Iterator[Block]:
    for finding in case.findings[:FINDINGS_SHOWN]:
        yield Line(finding.words, label=f"{finding.tool}, {finding.kind}:", indent=2)
    if len(case.findings) > FINDINGS_SHOWN:
        yield Line(f"{len(case.findings) - FINDINGS_SHOWN} more findings in the report", indent=2)


def _output(output: OutputRecord, reason: str, *, named: bool) -> Iterator[Block]:
    """What is wrong with an output, as far as the case's `reason` does not say it.

    Its worst element, wrong forms, the pattern of its errors.
    """
    found = queries.worst_of(output)
    if found is not None and f"{output.name}{_at(found[1].index)}" in reason:
        found = None
    if named and (found is not None or output.structure or output.pattern is not None):
        yield Line(output.name, label="output:", indent=2)
    if found is not None:
        yield from _element(output.name, *found)
    for one in output.structure:
        yield Line(_at(one.first), label="first index:", indent=2)
        yield Line(f"{number(one.got, 9)}, want {one.want}", label="got:", indent=2)
    if output.pattern is not None:
        text = f"{output.pattern.kind} ({output.pattern.words})"
        yield Line(text, label="pattern:", indent=2)


def _element(output: str, check: CheckRecord, one: ElementRecord) -> Iterator[Block]:
    exceeding = "" if check.exceeding is None else f"{check.exceeding} of {check.elements} exceed"
    texts: list[tuple[str, Number | str]] = [
        ("index:", _at(one.index)),
        ("got:", number(one.got, 9)),
        ("want:", number(one.want, 9)),
        ("error:", number(one.error)),
        ("limit:", number(one.limit)),
    ]
    for label, text in texts:
        yield Line(str(text), label=label.ljust(6), indent=2)
    words = f"{check.metric} of {output} against the {check.against}: {exceeding}"
    yield Line(f"{words} {number(check.limit)}".strip(), label="check:", indent=2)


def _at(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index))}]"
