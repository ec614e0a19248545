"""Where the buffers of a case lie in the memory file (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from tokitai_cli.core.fills import NBYTES, start_of
from tokitai_cli.core.model.case import BufferPlan, Case, Role

PAGE = 4096
_KINDS = {
    Role.INPUT: 0,
    Role.OUTPUT: 1,
    Role.INOUT: 2,
    Role.WORKSPACE: 3,
    Role.SYMBOL: 4,
    Role.LIST: 5,
    Role.STRUCT: 6,
}
_IN_SYMBOL = 1 << 8  # beside the kind of a result: it lies in a symbol
_FILL_NOTHING, _FILL_CONTENT = 0, 3
_FILL_KEPT = 5
_FILLS = {"sentinel": 1, "zero": 2, "zero-once": 4}
_FILL_SPAN = -(-NBYTES // PAGE) * PAGE


class Placed(msgspec.Struct, frozen=True):
    """A buffer with its offsets in bytes; an offset is that of a payload's first byte."""

    plan: BufferPlan
    kind: int
    fill: int
    #: 0 where the tool writes nothing.
    content: int
    #: 0 where the kernel's result is not kept.
    region: int
    #: 0 where one region serves all repetitions.
    stride: int
    front: int
    #: Padding to a whole page, and one page.
    back: int
    #: Byte of the repetition's fill that the payload begins with.
    start: int

    def words(self) -> tuple[int, ...]:
        """Return the buffer's words of a run request."""
        return (
            self.kind,
            self.plan.nbytes,
            self.fill,
            self.content,
            self.region,
            self.stride,
            self.front,
            self.back,
            self.start,
        )

    def regions(self, repetitions: int) -> list[tuple[int, int]]:
        """(repetition, payload offset) of every result region.

        A region that serves all repetitions counts for the last one.
        """
        if not self.region:
            return []
        if not self.stride:
            return [(repetitions - 1, self.region)]
        return [(turn, self.region + turn * self.stride) for turn in range(repetitions)]


class Layout(msgspec.Struct, frozen=True):
    """All buffers of a case, the fill of each repetition and the size of the memory file in bytes."""

    buffers: tuple[Placed, ...]
    fills: tuple[int, ...]
    nbytes: int


def lay_out(case: Case, repetitions: int, kept: Collection[str] = ()) -> Layout:
    """Place every buffer with a page of guard in front and at least one behind.

    Outputs and in-out buffers have a region per repetition, workspaces one for all. `kept` names
    workspaces whose content the tool writes there.
    """
    placed: list[Placed] = []
    end = 0
    for plan in case.buffers:
        back = -plan.nbytes % PAGE + PAGE
        block = PAGE + plan.nbytes + back
        content = region = stride = 0
        if plan.role is Role.INOUT or _fill(plan) == _FILL_NOTHING:
            content = end + PAGE
            end += block
        if plan.role in (Role.OUTPUT, Role.INOUT, Role.WORKSPACE):
            region = end + PAGE
            shared = plan.role is Role.WORKSPACE
            stride = 0 if shared else block
            end += block if shared else block * repetitions
        kind, start = _KINDS[plan.role] + _IN_SYMBOL * bool(plan.symbol), start_of(plan.name)
        fill = _FILL_KEPT if plan.name in kept else _fill(plan)
        placed.append(Placed(plan, kind, fill, content, region, stride, PAGE, back, start))
    fills = tuple(end + turn * _FILL_SPAN for turn in range(repetitions))
    return Layout(tuple(placed), fills, end + repetitions * _FILL_SPAN)


def _fill(plan: BufferPlan) -> int:
    if plan.role is Role.INOUT:
        return _FILL_CONTENT
    if plan.role in (Role.INPUT, Role.SYMBOL, Role.LIST, Role.STRUCT):
        return _FILL_NOTHING
    return _FILLS[plan.init]
