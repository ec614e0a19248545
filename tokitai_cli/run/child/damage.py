"""What a child found changed that no kernel may change: inputs, and who wrote beyond an array."""

from __future__ import annotations

import msgspec

from tokitai_cli.core.model.case import BufferPlan, GuardDamage, InputDamage, Role
from tokitai_cli.core.model.wording import visible
from tokitai_cli.run.child.frames import Answer
from tokitai_cli.run.child.memory_layout import Layout


def inputs_changed(layout: Layout, answer: Answer) -> tuple[InputDamage, ...]:
    """Inputs that the kernels wrote to."""
    return tuple(
        _of_input(buffer.plan, count, offset)
        for buffer, (count, offset) in zip(layout.buffers, answer.changed, strict=True)
        if buffer.plan.role in (Role.INPUT, Role.LIST, Role.STRUCT) and count
    )


def _of_input(plan: BufferPlan, count: int, offset: int) -> InputDamage:
    if plan.role is not Role.STRUCT or offset < 0:
        return InputDamage(plan.name, offset, count)
    number, offset = divmod(offset, 1 << 32)
    return InputDamage(plan.name, offset, count, number - 1 if number else None)


def with_writer(
    guards: tuple[GuardDamage, ...], answer: Answer, layout: Layout
) -> tuple[GuardDamage, ...]:
    """The same damage with who did some of it, where the child found that out."""
    if answer.writer is None:
        return guards
    index, repetition, words = answer.writer
    names = [buffer.plan.name for buffer in layout.buffers]
    name = names[index] if index < len(names) else ""
    for at, one in enumerate(guards):
        # Damage in a region that all repetitions share counts for the last one.
        if one.buffer == name and one.repetition >= repetition:
            found = msgspec.structs.replace(one, writer=visible(words))
            return (*guards[:at], found, *guards[at + 1 :])
    return guards
