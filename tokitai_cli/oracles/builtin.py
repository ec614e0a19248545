"""What a built-in oracle is made of; the modules of `oracles.ops` state theirs as ORACLES."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from numpy.typing import NDArray

from tokitai_cli.model.case import Case, Expectation, Replay
from tokitai_cli.oracles.properties import Builder

Arrays = Mapping[str, NDArray[Any]]


class BuiltIn(msgspec.Struct, frozen=True):
    """A built-in oracle.

    read: takes from a case what the oracle needs, and raises SpecError where that is not there.
    expect: reference and bound of every output. replay: the bits of a kernel with the order of the
    oracle's, or None. properties: identities that it states, each with the output that it is stated of.
    welford: whether it has a bound for that reduction.
    """

    read: Callable[[Case, Arrays], object]
    expect: Callable[[Case, Arrays], dict[str, Expectation]]
    replay: Callable[[Case, Arrays, int], dict[str, Replay]] | None = None
    properties: Mapping[str, tuple[str, Builder]] = {}
    welford: bool = False
