"""What a run of a draft has shown, for the next one."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Seen(msgspec.Struct, frozen=True):
    """What a draft is to allow for, since a kernel that ran by an earlier one asked for it.

    elements: that each array has to have, counted flat. shared: bytes of dynamic shared memory beside
    those of the draft. whole: what arrays of whole numbers that are read are drawn as, as YAML; empty
    where their own draws stay. halvings: how often sizes are halved, so that it ends sooner.
    """

    elements: Mapping[str, int] = {}
    shared: int = 0
    whole: str = ""
    halvings: int = 0


NOTHING = Seen()
