"""A draft changed until its kernel comes to its end, by how each run of it ended.

A draft is a guess by the text of kernel and host. Where an index is made of what an array holds, or a
loop ends by it, only a run shows what the guess lacks.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tokitai_cli.core.errors import DYNAMIC_SHARED
from tokitai_cli.drafts.draft import Draft
from tokitai_cli.drafts.model import Flow, SpecDraft
from tokitai_cli.drafts.trial.attempt import Runner, TrialResult
from tokitai_cli.drafts.trial.changes import (
    with_elements,
    with_fields,
    with_halves,
    with_larger,
    with_macro,
    with_multiples,
    with_shared,
    with_whole,
)

_MOST_RUNS = 12
_MARGINS = (2, 1.5, 1.2)  # times what was reached, as far as it fits: other threads reach further
_MOST_GROWN = 1 << 24  # elements of an array, beyond which it is what was drawn that led there
# What whole numbers that are read may have to be: places, each its own; nothing; no place; something.
_WHOLE: tuple[Flow, ...] = (
    {"kind": "arange"},
    *({"kind": "constant", "value": one} for one in (0, -1, 1)),
)
_HALVINGS = (3, 6)
_LARGER = 16  # times a size that others are taken from, where that leads before an array
_LANES = 8  # numbers of a vector, of the most that one has
_FIELDS = 5  # of sizes in arrays of structs, where 1 leaves nothing within a border
_MOST_MACROS = 4
_GROWS = 2  # times that an array grows before other draws are tried


class Settled(msgspec.Struct, frozen=True):
    """A draft after its runs: the first that came to its end, else as it was, and how it ended."""

    draft: Draft
    ended: TrialResult
    runs: int


class _Step(msgspec.Struct, frozen=True):
    """A model, and how far two of its kinds of changes have come."""

    model: SpecDraft
    #: The model with the draws and sizes that it was drafted with.
    grown: SpecDraft
    whole: int = 0
    halved: int = 0
    #: Arrays that grew, once for each time.
    grew: tuple[str, ...] = ()


def retry_until_it_runs(draft: Draft, run: Runner) -> Settled:
    """Run a draft; where it does not come to its end, change it and run it again, a few times."""
    first = ended = run(draft)
    runs = 1
    for _ in range(_MOST_MACROS):
        if ended.undeclared and draft.model is not None:
            draft = msgspec.structs.replace(draft, model=with_macro(draft.model, ended.undeclared))
            ended, runs = run(draft), runs + 1
    if not ended.why or ended.before or draft.model is None:
        return Settled(draft, ended, runs)
    first = ended
    step, tried = _Step(draft.model, draft.model), {draft.spec}
    now = draft
    while ended.why and runs < _MOST_RUNS:
        for new in _changes(step, ended):
            now = msgspec.structs.replace(draft, model=new.model)
            if now.spec not in tried:
                break
        else:
            return Settled(draft, first, runs)
        step, ended = new, run(now)
        runs += 1
        tried.add(now.spec)
    return Settled(draft, first, runs) if ended.why else Settled(now, ended, runs)


def _changes(step: _Step, ended: TrialResult) -> Iterator[_Step]:
    """What may be mended next, the likeliest first."""
    change = msgspec.structs.replace
    if ended.misaligned:
        new, grown = (with_multiples(one, _LANES) for one in (step.model, step.grown))
        yield change(step, model=new, grown=grown)
    for name in step.model.params if ended.below else ():
        yield change(step, model=with_larger(step.grown, name, _LARGER))
    if ended.array == DYNAMIC_SHARED:
        for margin in _MARGINS:
            more = int(margin * ended.reached)
            new, grown = with_shared(step.model, more), with_shared(step.grown, more)
            yield change(step, model=new, grown=grown)
    beyond = ended.array and ended.array != DYNAMIC_SHARED and ended.reached < _MOST_GROWN
    larger = [_grown(step, ended)] if beyond else []
    drawn = [] if ended.large else [
        change(step, model=with_whole(step.model, draw), whole=at)
        for at, draw in enumerate(_WHOLE[step.whole :], step.whole + 1)
    ]  # fmt: skip
    if step.model == step.grown and (fields := with_fields(step.model, _FIELDS)) != step.model:
        yield change(step, model=fields, grown=fields)
    # An array that grows again and again is run through by what was drawn.
    yield from (*drawn, *larger) if step.grew.count(ended.array) >= _GROWS else (*larger, *drawn)
    for more in _HALVINGS:
        if more > step.halved:
            yield change(step, model=with_halves(step.grown, more), whole=0, halved=more)


def _grown(step: _Step, ended: TrialResult) -> _Step:
    """With room in the array that a kernel went beyond."""
    elements = int(_MARGINS[0] * ended.reached)
    new, old = (with_elements(one, ended.array, elements) for one in (step.model, step.grown))
    return msgspec.structs.replace(step, model=new, grown=old, grew=(*step.grew, ended.array))
