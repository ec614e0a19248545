"""What failing shapes have in common."""

from __future__ import annotations

import pytest

from tokitai_cli.core.model.shapes import in_common


def of(*sizes: int) -> list[dict[str, int]]:
    return [{"n": size} for size in sizes]


@pytest.mark.parametrize(
    ("failing", "passing", "words"),
    [
        (of(257, 1031), of(256, 512), "n is not a multiple of 2"),
        (of(258, 1030), of(256, 512), "n is not a multiple of 4"),
        (of(64, 192), of(65, 100), "n is a multiple of 64"),
        (of(300, 4000), of(5, 12), "n is above 12"),
        (of(1, 1), of(5, 12), "n = 1"),
        (of(96, 288), of(100, 1000), "n is a multiple of 96"),
        (of(12, 16, 18), of(14, 10, 20), ""),
        (of(257), of(256, 512), ""),
        (of(257, 3), of(256), ""),
        ([{"m": 5, "n": 3}, {"m": 9, "n": 7}], [{"m": 3, "n": 5}, {"m": 7, "n": 9}], "m is above n"),
        ([{"m": 5, "n": 3}, {"m": 3, "n": 5}], [{"m": 3, "n": 3}, {"m": 5, "n": 5}], "m and n differ"),
        ([{"m": 8, "n": 3}, {"m": 8, "n": 5}], [{"m": 4, "n": 3}, {"m": 16, "n": 5}], "m = 8"),
    ],
)  # fmt: skip
def test_the_simplest_rule_that_separates_them(
    failing: list[dict[str, int]], passing: list[dict[str, int]], words: str
) -> None:
    assert in_common(failing, passing, blocks=(96,)) == words
