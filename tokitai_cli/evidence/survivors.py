"""What is left of the changes of a formula when all cases that tried them are taken together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tokitai_cli.core.model.judged import ChangesRecord


class Survivors(NamedTuple):
    """How many changes were tried, and those that no case rejects: accepted in one, or untold."""

    tried: int
    accepted: list[str]
    undetected: list[str]


def survivors_of(records: Sequence[ChangesRecord]) -> Survivors:
    """Changes that some case lets pass or cannot tell, and that no case rejects.

    A change that a record does not name altered nothing there, which tells nothing of the checks.
    Older records name no rejected change: there, any that is not named counts as rejected.
    """
    rejected = {words for one in records for words in one.rejected}
    accepted = {words for one in records for words in one.accepted}
    named = dict.fromkeys(words for one in records for words in (*one.accepted, *one.undetected))
    older = [
        {*one.accepted, *one.undetected}
        for one in records
        if not one.rejected and len(one.accepted) + len(one.undetected) < one.tried
    ]
    left = [
        words
        for words in named
        if words not in rejected and all(words in passed for passed in older)
    ]
    return Survivors(
        tried=max([len(rejected | named.keys()), *(one.tried for one in records)]),
        accepted=[words for words in left if words in accepted],
        undetected=[words for words in left if words not in accepted],
    )
