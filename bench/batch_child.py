"""Runs a batch with one thread a worker, and tells where its time went, as JSON on the last line.

Takes the words of `tokitai batch`. seconds: of the whole batch; running: of them, until the last result
was on disk; keeping, summary: of them, keeping results and making the index, in wall seconds, and with
_cpu in CPU seconds; peak, worker: largest resident sets in bytes.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli import batch
from tokitai_cli.batch.store.database import Store

_SPENT = {"keeping": 0.0, "summary": 0.0, "keeping_cpu": 0.0, "summary_cpu": 0.0}


def main(words: list[str]) -> None:
    """Run the batch that `words` describe: DIR --suite NAME --seed LIST --device NAME -j N --out DIR."""
    given = dict(zip(words[1::2], words[2::2], strict=False))
    options = batch.batch_options(
        [words[0]],
        suite=[given["--suite"]],
        seed=given["--seed"],
        device=given["--device"],
        jobs=int(given["-j"]),
        out=given["--out"],
    )
    settings = msgspec.structs.replace(options.settings, threads=1)
    options = msgspec.structs.replace(options, settings=settings)
    collected = batch.collect(options)
    for name in ("begin", "end"):
        setattr(Store, name, _timed("keeping", getattr(Store, name)))
    # Both kinds of results that came together are kept in one go.
    conductor = vars(sys.modules["tokitai_cli.batch.work.conduct"])["Conductor"]
    conductor._keep = _timed("keeping", conductor._keep)
    # The name that the module itself calls.
    module = vars(sys.modules["tokitai_cli.batch.batch_run"])
    module["summarise"] = _timed("summary", module["summarise"])
    start = time.perf_counter()
    outcome = batch.run(options, collected, lambda event: None)
    seconds = time.perf_counter() - start
    if outcome.index.verdict != "verified":
        sys.exit(f"{outcome.index.verdict}: {outcome.index.reason}")
    told = {
        **_SPENT,
        "seconds": seconds,
        "running": outcome.index.seconds,
        "peak": _peak(),
        "worker": _children_peak(),
    }
    sys.stdout.write(json.dumps(told) + "\n")


def _timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        start, cpu = time.perf_counter(), time.thread_time()
        try:
            return work(*args, **kwargs)
        finally:
            _SPENT[name] += time.perf_counter() - start
            _SPENT[f"{name}_cpu"] += time.thread_time() - cpu

    return timed


def _peak() -> int:
    """Peak of this process alone: getrusage also counts the one that started it."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def _children_peak() -> int:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10


if __name__ == "__main__":
    main(sys.argv[1:])
