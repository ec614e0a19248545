"""Parts of one thing, worked on by several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from tokitai_cli.core import parallel


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_results_come_in_the_order_of_the_parts(threads: int, count: int) -> None:
    def work(part: int) -> int:
        time.sleep(0.001 * (part % 3))
        return part * part

    with parallel.sharing(threads):
        assert list(parallel.in_order(work, range(count))) == [n * n for n in range(count)]


def test_no_more_parts_are_begun_than_threads_have_at_hand() -> None:
    begun = []

    def parts() -> Iterator[int]:
        for part in range(100):
            begun.append(part)
            yield part

    with parallel.sharing(3):
        results = parallel.in_order(lambda part: part, parts())
        assert next(results) == 0
        assert len(begun) <= 7
        assert list(results) == list(range(1, 100))


def test_what_work_raises_is_raised_in_its_place() -> None:
    def work(part: int) -> int:
        if part == 5:
            raise ValueError(part)
        return part

    with parallel.sharing(4):
        results = parallel.in_order(work, range(1000))
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(ValueError, match="5"):
            next(results)


def test_work_of_one_thread_starts_none() -> None:
    with parallel.sharing(1):
        names = set(parallel.in_order(lambda part: threading.current_thread().name, range(9)))
    assert names == {threading.current_thread().name}
