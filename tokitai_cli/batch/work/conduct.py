"""The batch under way: tasks out, replies in, and every result on disk before it is counted."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from tokitai_cli import evidence
from tokitai_cli.batch.select.collected import BatchCase, Collected
from tokitai_cli.batch.store import Store
from tokitai_cli.batch.work.executor import Executor
from tokitai_cli.batch.work.queue import TaskQueue
from tokitai_cli.core.model.batch_record import (
    BatchEnded,
    BatchPlanned,
    BatchProgress,
    Done,
    Reply,
    Task,
)
from tokitai_cli.core.model.events import Note
from tokitai_cli.core.model.verdict import UNSETTLED, Verdict
from tokitai_cli.core.process import undisturbed
from tokitai_cli.evidence.queries import FINE

_WAIT_SECONDS = 1.0

Listener = Callable[[BatchPlanned | BatchProgress | Note], None]


class Conductor:
    """Runs what was collected, with results into `store`, which the batch has begun in.

    earlier: newest results on disk, which tell how long a case takes; with `resume` those that are
    still fresh are kept. max_failures: the batch stops after so many, 0 for no limit.
    """

    def __init__(
        self,
        collected: Collected,
        store: Store,
        earlier: Iterable[Done],
        listener: Listener,
        *,
        resume: bool,
        max_failures: int,
    ) -> None:
        self._cases = collected.cases
        self._store = store
        self._listener = listener
        self._max_failures = max_failures
        # Results on disk that may still be fresh: workers will tell.
        self._candidates: dict[int, Done] = {}
        recorded: dict[int, float] = {}
        by_id = {case.id: case for case in self._cases}
        for done in earlier:
            if (case := by_id.get(done.id)) is not None:
                recorded[case.number] = done.seconds
                if resume and _may_be_fresh(case, done):
                    self._candidates[case.number] = done
        self._seconds = expected_seconds(collected.cases, recorded)
        self._work_left = sum(self._seconds)
        self._work_done = 0.0
        self._done = self._kept = self._failures = 0
        self._stopped = False
        # Cases that did not find room beside others, to be run again by themselves.
        self._alone: list[int] = []
        self._ran_alone: set[int] = set()
        # What was passed over stands in the index too, where a quiet run is read.
        self._notes = dict.fromkeys(collected.skipped)
        self._start = time.monotonic()

    def candidates(self) -> int:
        """Number of results on disk that may still be fresh."""
        return len(self._candidates)

    def run(self, executor: Executor) -> BatchEnded:
        """Run every case; an interrupt is an end like others, and is raised once it is on disk."""
        try:
            self._everything(executor)
        except KeyboardInterrupt:
            self._end("interrupted")
            raise
        return self._end("stopped" if self._stopped else "whole")

    def _everything(self, executor: Executor) -> None:
        queue = TaskQueue(
            (self._task(case), seconds)
            for case, seconds in zip(self._cases, self._seconds, strict=True)
        )
        with executor:
            while self._done < len(self._cases):
                if not queue and not executor.running:
                    if not self._alone or self._stopped:
                        break
                    queue.put(self._task(self._cases[self._alone.pop()]))
                executor.feed(queue)
                replies = executor.collect(_WAIT_SECONDS)
                self._take(replies, queue, crowded=executor.running > 0 or len(replies) > 1)

    def _take(self, replies: Sequence[Reply], queue: TaskQueue, *, crowded: bool) -> None:
        """Keep what came, then count it."""
        settled = [reply for reply in replies if not self._postponed(reply, crowded=crowded)]
        self._keep(settled)
        for reply in settled:
            if reply.builds or reply.devices:
                task = self._cases[reply.number].task()
                queue.learned(task, (*reply.builds, *reply.devices))
            self._count(reply)
        if self._max_failures and self._failures >= self._max_failures and not self._stopped:
            self._stopped = self._done < len(self._cases)
            queue.clear()

    def _keep(self, replies: Sequence[Reply]) -> None:
        """Put results on disk together, whole or not at all."""
        with undisturbed(), self._store.writing():
            self._store.commit(
                (self._cases[reply.number].done(reply), reply)
                for reply in replies
                if not reply.fresh
            )
            self._store.keep([self._found_fresh(reply) for reply in replies if reply.fresh])

    def _postponed(self, reply: Reply, *, crowded: bool) -> bool:
        """Whether a case that did not fit beside others is left for a time when it is alone."""
        if reply.verdict is not Verdict.NOT_RUN or reply.fresh or not crowded:
            return False
        if reply.number in self._ran_alone:
            return False
        self._ran_alone.add(reply.number)
        self._alone.append(reply.number)
        return True

    def _found_fresh(self, reply: Reply) -> Done:
        """The result on disk that the reply found fresh, under its number in this batch."""
        done: Done = self._candidates[reply.number]
        return msgspec.structs.replace(done, number=reply.number)

    def _count(self, reply: Reply) -> None:
        case = self._cases[reply.number]
        verdict = self._candidates[case.number].verdict if reply.fresh else reply.verdict
        self._done += 1
        self._kept += reply.fresh
        self._failures += verdict not in FINE
        self._work_left -= self._seconds[reply.number]
        if not reply.fresh:
            self._work_done += self._seconds[reply.number]
        for text in reply.notes:
            if text not in self._notes:
                self._notes[text] = None
                self._listener(Note(text))
        spent = time.monotonic() - self._start
        ran = self._done - self._kept
        self._listener(
            BatchProgress(
                id=case.id,
                verdict=verdict,
                reason="" if reply.fresh else reply.reason,
                position=self._done,
                total=len(self._cases),
                failures=self._failures,
                kept=self._kept,
                rate=ran / spent if spent > 0 else 0.0,
                remaining_seconds=self._left(spent),
            )
        )

    def _left(self, spent: float) -> float | None:
        """Seconds that the rest may take, at the pace of what was done; None where nothing was."""
        if self._work_done <= 0:
            return None
        return max(0.0, self._work_left) * spent / self._work_done

    def _task(self, case: BatchCase) -> Task:
        done = self._candidates.get(case.number)
        task = case.task()
        if done is None:
            return task
        return msgspec.structs.replace(
            task, have_build=done.build, have_device=done.device_identity
        )

    def _end(self, how: Literal["whole", "interrupted", "stopped"]) -> BatchEnded:
        ended = BatchEnded(
            how=how,
            finished=evidence.timestamp(os.environ),
            seconds=time.monotonic() - self._start,
            notes=list(self._notes),
        )
        self._store.end(ended)
        return ended


def _may_be_fresh(case: BatchCase, done: Done) -> bool:
    """Whether a result says something of a kernel, and was run from what is known without a build."""
    settled = done.verdict not in UNSETTLED and bool(done.build)
    return settled and done.fingerprint == case.fingerprint


def expected_seconds(cases: Sequence[BatchCase], recorded: Mapping[int, float]) -> list[float]:
    """Seconds that each case is expected to take: recorded ones by number, else by size at their pace.

    Without any record the sizes themselves, scaled to the order of a second for the largest.
    """
    paces = [
        recorded[case.number] / case.weight
        for case in cases
        if case.number in recorded and case.weight > 0
    ]
    largest = max((case.weight for case in cases), default=1.0) or 1.0
    pace = statistics.median(paces) if paces else 1.0 / largest
    return [recorded.get(case.number, case.weight * pace) for case in cases]
