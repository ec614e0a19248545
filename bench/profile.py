"""Where the time of a warm run goes: imports by package, then the stages by their own record."""

from __future__ import annotations

import collections
import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench._runs import PYTHON, TOKITAI, Line, environment, run

ROUNDS = 10
_LEAST_MS = 2.0
_COMMAND = ["verify", "gemm-bw", "--m", "64", "--profile", "normal"]


def measure(folder: Path) -> Iterator[Line]:
    """Milliseconds. Imports are the least of ten runs, the rest medians; none has a target.

    `-X importtime` slows what it measures, so that the parts add up to more than the whole.
    """
    env = environment(folder / "cache")
    run([TOKITAI, *_COMMAND], env, folder)
    bare = statistics.median(run([PYTHON, "-c", "pass"], env, folder).wall for _ in range(ROUNDS))
    yield _line("python -c pass", bare)
    packages = _imports(env, folder)
    for name, seconds in sorted(packages.items(), key=lambda item: -item[1]):
        if seconds * 1e3 >= _LEAST_MS:
            yield _line(f"import {name}", seconds)
    small = [seconds for seconds in packages.values() if seconds * 1e3 < _LEAST_MS]
    yield _line("import all others", sum(small), f"{len(small)} packages below {_LEAST_MS:g} ms")
    spans: dict[str, list[float]] = collections.defaultdict(list)
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run([TOKITAI, *_COMMAND], env, folder)
        spans["whole command"].append(time.perf_counter() - start)
        volatile = json.loads((folder / "reports" / "gemm-bw.json").read_text("utf-8"))["volatile"]
        spent: dict[str, float] = collections.defaultdict(float)
        for stages in volatile["stage_seconds"].values():
            for stage, seconds in stages.items():
                spent[stage] += seconds
        for stage, seconds in spent.items():
            spans[f"stage {stage}"].append(seconds)
    for name, values in spans.items():
        yield _line(name, statistics.median(values))


def _imports(env: dict[str, str], folder: Path) -> dict[str, float]:
    """Seconds by package, from the self times of `-X importtime`; the tool's own as one."""
    least: dict[str, float] = {}
    for _ in range(ROUNDS):
        done = subprocess.run(
            [PYTHON, "-X", "importtime", "-m", "tokitai_cli", *_COMMAND, "--quiet"],
            env=env,
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        for line in done.stderr.splitlines():
            own, _, rest = line.removeprefix("import time:").partition("|")
            if line.startswith("import time:") and own.strip().isdigit():
                module = rest.rpartition("|")[2].strip()
                least[module] = min(least.get(module, 1e9), float(own) * 1e-6)
    packages: dict[str, float] = collections.defaultdict(float)
    for module, seconds in least.items():
        packages[module.partition(".")[0]] += seconds
    return packages


def _line(name: str, seconds: float, detail: str = "") -> Line:
    return Line(name, 1000 * seconds, "ms", None, detail)
