"""A draft changed until its kernel comes to its end, by how each run of it ended.

A draft is a guess by the text of kernel and host. Where an index is made of what an array holds, or a
loop ends by it, only a run shows what the guess lacks.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tokitai_cli.core.errors import DYNAMIC_SHARED
from tokitai_cli.drafts.draft import Draft
from tokitai_cli.drafts.feedback import NO_FEEDBACK, RunFeedback
from tokitai_cli.drafts.trial.attempt import Runner, TrialResult

_MOST_RUNS = 12
_MARGINS = (2, 1.5, 1.2)  # times what was reached, as far as it fits: other threads reach further
_MOST_GROWN = 1 << 24  # elements of an array, beyond which it is what was drawn that led there
# What whole numbers that are read may have to be: places, each its own; nothing; no place; something.
_WHOLE = ("{kind: arange}", *(f"{{kind: constant, value: {one}}}" for one in (0, -1, 1)))
_HALVINGS = (3, 6)


class Settled(msgspec.Struct, frozen=True):
    """A draft after its runs: the first that came to its end, else as it was, and how it ended."""

    draft: Draft
    ended: TrialResult
    runs: int


def retry_until_it_runs(draft: Draft, run: Runner) -> Settled:
    """Run a draft; where it does not come to its end, change it and run it again, a few times."""
    first = ended = run(draft)
    now, seen, runs, tried = draft, NO_FEEDBACK, 1, {draft.spec}
    while ended.why and not first.before and runs < _MOST_RUNS:
        for new in _changes(seen, ended):
            other = draft.again(new)
            if other.spec not in tried:
                break
        else:
            return Settled(draft, first, runs)
        now, seen, ended = other, new, run(other)
        runs += 1
        tried.add(other.spec)
    return Settled(draft, first, runs) if ended.why else Settled(now, ended, runs)


def _changes(seen: RunFeedback, ended: TrialResult) -> Iterator[RunFeedback]:
    """What may be mended next, the likeliest first."""
    change = msgspec.structs.replace
    if ended.array == DYNAMIC_SHARED:
        more = seen.shared + ended.reached
        yield from (change(seen, shared=int(times * more)) for times in _MARGINS)
    elif ended.array and ended.reached < _MOST_GROWN:
        elements = {**seen.elements, ended.array: int(_MARGINS[0] * ended.reached)}
        yield change(seen, elements=elements)
    if not ended.large:
        tried = _WHOLE.index(seen.whole) + 1 if seen.whole in _WHOLE else 0
        yield from (change(seen, whole=one) for one in _WHOLE[tried:])
    for more in _HALVINGS:
        if more > seen.halvings:
            yield change(seen, whole="", halvings=more)
