"""Jobs on threads beside each other."""

from __future__ import annotations

import functools
import threading

import pytest

from tokitai_cli.core.side_by_side import all_of


def test_results_come_in_the_order_of_the_jobs() -> None:
    jobs = [functools.partial(pow, at, 2) for at in range(20)]
    assert all_of(jobs, 3) == [at * at for at in range(20)]
    assert all_of(jobs[:0], 4) == []


def test_as_many_run_at_a_time_as_there_are_workers() -> None:
    met = threading.Barrier(2, timeout=10)
    assert all_of([met.wait, met.wait], 2) in ([0, 1], [1, 0])
    here = threading.get_ident()
    assert all_of([threading.get_ident, threading.get_ident], 1) == [here, here]


def test_what_a_job_raises_is_raised() -> None:
    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        all_of([lambda: 1, fail, lambda: 2], 2)
