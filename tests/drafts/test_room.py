"""Room in arrays is as small as holds what is reached at every shape, and reads plainly."""

from __future__ import annotations

import pytest

from tokitai_cli.drafts.room import room_for


@pytest.mark.parametrize(
    ("reached", "extents", "told"),
    [
        ([192, 2, 514], [], "2 * n"),
        ([256, 256, 700], [], "max(256, 3 * n)"),
        ([96 * 96, 1, 257 * 257], ["n"], "n * n"),
        ([97, 2, 258], ["n + 1"], "n + 1"),
        ([194, 4, 516], ["n + 1"], "2 * (n + 1)"),
        ([1 << 40, 1, 1], [], "349526 * n"),
    ],
)
def test_room_holds_what_is_reached_at_every_shape(
    reached: list[int], extents: list[str], told: str
) -> None:
    shapes = [{"n": 96}, {"n": 1}, {"n": 257}]
    assert room_for(reached, shapes, extents, ["n"], 1 << 25) == told
