"""What a run of a draft has shown, for the next one."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class RunFeedback(msgspec.Struct, frozen=True):
    """What a draft is to allow for, since a kernel that ran by an earlier one asked for it."""

    #: That each array has to have, counted flat.
    elements: Mapping[str, int] = {}
    #: Bytes of dynamic shared memory beside those of the draft.
    shared: int = 0
    #: What arrays of whole numbers that are read are drawn as, as YAML; empty where their own draws
    #: stay.
    whole: str = ""
    #: How often sizes are halved, so that it ends sooner.
    halvings: int = 0


NO_FEEDBACK = RunFeedback()
