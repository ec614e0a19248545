"""The slowest cases of a run or a batch, as `--durations` asks for them."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Iterator

from tokitai_cli.cli.terminal.streams import emit
from tokitai_cli.cli.terminal.styled_blocks import STRONG, Block, Column, Line, Table
from tokitai_cli.core.model.evidence import Evidence


def case_seconds(evidence: Evidence) -> Iterator[tuple[str, float]]:
    """Each case that ran, and how long all its stages took together."""
    for case in evidence.cases:
        if stages := evidence.volatile.stage_seconds.get(case.key):
            yield case.key, sum(stages.values())


def show_slowest(
    times: Iterable[tuple[str, float]], most: int | None, *, to_stderr: bool = False
) -> None:
    """Show the slowest cases of `times` in seconds, at most `most`; nothing where that is None."""
    if most is None:
        return
    found = heapq.nlargest(most, times, key=lambda one: one[1])
    rows = [[f"{seconds:.2f}", case] for case, seconds in found]
    blocks: list[Block] = [Line("slowest cases", STRONG)]
    if rows:
        blocks.append(Table([Column("seconds", right=True), Column("case", wide=True)], rows))
    else:
        blocks.append(Line("no case ran", indent=2))
    emit(blocks, sys.stderr if to_stderr else sys.stdout)
