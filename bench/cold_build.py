"""Building harness and kernel with nothing in the cache."""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

from bench._runs import TOKITAI, Line, Usage, environment, run

ROUNDS = 5


def measure(folder: Path) -> Iterator[Line]:
    """Seconds that the build stage records: compiler identity, harness text, compiler, publishing.

    The cpu device, each round with a new cache.
    """
    cache = folder / "cold"
    command = [TOKITAI, "verify", "gemm-bw", "--build-only", "--device", "cpu"]
    usages: list[Usage] = []
    builds: list[float] = []
    for _ in range(ROUNDS):
        shutil.rmtree(cache, ignore_errors=True)
        usages.append(run(command, environment(cache), folder))
        evidence = json.loads((folder / "reports" / "gemm-bw.json").read_text("utf-8"))
        (seconds,) = evidence["volatile"]["build_seconds"].values()
        builds.append(seconds)
    wall = statistics.median(usage.wall for usage in usages)
    cpu = statistics.median(usage.cpu for usage in usages)
    detail = f"whole command {wall:.1f} s, of that CPU {cpu:.1f} s; least build {min(builds):.1f} s"
    yield Line("cold build of harness and kernel", statistics.median(builds), "s", 4.0, detail)
