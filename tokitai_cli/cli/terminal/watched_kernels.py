"""Kernels of sources that were watched without a spec."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tokitai_cli.cli.terminal.run_summary import FINDINGS_SHOWN, verdict_style
from tokitai_cli.cli.terminal.streams import emit
from tokitai_cli.cli.terminal.styled_blocks import DOUBTFUL, FAINT, Block, Line
from tokitai_cli.core.model.wording import plural, shape_text

if TYPE_CHECKING:  # it brings what reads C++, which most commands do without
    from tokitai_cli.drafts.trial.sanitized import WatchedKernel


def show_watched(kernels: Sequence[WatchedKernel]) -> None:
    """Show what was found in each kernel, and how many came out how."""
    blocks = [block for one in kernels for block in _kernel(one)]
    outcomes = dict.fromkeys(one.outcome for one in kernels)
    counts = (f"{sum(one.outcome == word for one in kernels)} {word}" for word in outcomes)
    blocks.append(Line(f"{plural(len(kernels), 'kernel')}: {', '.join(counts)}"))
    emit(blocks, sys.stdout)


def _kernel(one: WatchedKernel) -> Iterator[Block]:
    at = f" at {shape_text(one.shape)}" if one.shape else ""
    text = f"{one.outcome}: {one.kernel or 'no kernel'}{at}, {one.place}"
    yield Line(text, verdict_style(one.verdict))
    if one.reason and (not one.findings or one.guesses):
        yield Line(one.reason, DOUBTFUL, indent=2)
    for guess in one.guesses:
        yield Line(f"{guess.about}: {guess.words}", FAINT, label="guessed by the draft:", indent=2)
    for finding in one.findings[:FINDINGS_SHOWN]:
        yield Line(finding.words, label=f"{finding.tool}, {finding.kind}:", indent=2)
    if len(one.findings) > FINDINGS_SHOWN:
        yield Line(
            f"{len(one.findings) - FINDINGS_SHOWN} more findings (--json has them)", indent=2
        )
    if one.watched:
        kinds = ", ".join(dict.fromkeys(look.kind for look in one.watched))
        yield Line(kinds, FAINT, label="watched:", indent=2)
