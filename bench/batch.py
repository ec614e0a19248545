"""Batches: cases a second, what a second worker brings, what keeping costs, and Dask beside local."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from bench._runs import PYTHON, TOKITAI, Line, environment, run
from tokitai_cli.core import resources

CASES = 1000
MANY = 10_000
_SIZES = (16, 32, 48, 64)
# 2 variants, 10 profiles: shapes and seeds make up the number.
_SHAPES = 10
_EACH = 2 * 10 * _SHAPES
_ROUNDS = 3
# As docs/cluster.md advises for workers: one thread, and no profiler beside the cases.
_WORKER = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}
# Runs a batch, and says what the keeping of results took of it, and its own peak.
_MEASURED = Path(__file__).with_name("batch_child.py")


def measure(folder: Path) -> Iterator[Line]:
    """Everything about batches; specs lie in a folder of their own, the build cache is warm."""
    env = environment(folder / "cache")
    specs = _specs(folder)
    _batch(folder, env, specs, cases=_EACH, jobs=2)
    yield _thousand(folder, env, specs)
    yield _second_worker(folder, env, specs)
    yield _keeping(folder, env, specs)
    yield _beside_dask(folder, env, specs)
    yield _memory(folder, env, specs)


def _thousand(folder: Path, env: Mapping[str, str], specs: Path) -> Line:
    seconds = _batch(folder, env, specs, cases=CASES, jobs=2)
    detail = f"{CASES / seconds:.0f} cases a second; whole command, two workers, warm cache"
    return Line(f"batch of {CASES} cases of 16 to 64", seconds, "s", 60.0, detail)


def _second_worker(folder: Path, env: Mapping[str, str], specs: Path) -> Line:
    """Both with one BLAS and one device thread a worker; they take turns."""
    told: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(_ROUNDS):
        for jobs, found in told.items():
            found.append(_child(folder, env, specs, cases=CASES, jobs=jobs))
    running, whole = (
        {jobs: statistics.median(one[what] for one in found) for jobs, found in told.items()}
        for what in ("running", "seconds")
    )
    detail = f"{running[1]:.1f} s with one worker, {running[2]:.1f} s with two, "
    detail += f"until the last result; {whole[1] / whole[2]:.2f} x with the index"
    gain = running[1] / running[2]
    return Line("cases a second, two workers over one", gain, "x", 1.6, detail, at_least=True)


def _keeping(folder: Path, env: Mapping[str, str], specs: Path) -> Line:
    found = _child(folder, env, specs, cases=CASES, jobs=2)
    each = 1e3 * (found["keeping"] + found["summary"]) / CASES
    keeping = f"{1e3 * found['keeping'] / CASES:.2f} (CPU {1e3 * found['keeping_cpu'] / CASES:.2f})"
    parts = (
        f"keeping {keeping}, evidence and index {1e3 * found['summary'] / CASES:.2f}; two workers"
    )
    return Line("keeping and report, a case", each, "ms", 5.0, parts)


def _memory(folder: Path, env: Mapping[str, str], specs: Path) -> Line:
    few = _child(folder, env, specs, cases=CASES, jobs=2)
    many = _child(folder, env, specs, cases=MANY, jobs=2)
    sizes = f"peak {few['peak'] / 2**20:.0f} and {many['peak'] / 2**20:.0f} MiB; "
    sizes += f"largest worker {few['worker'] / 2**20:.0f} and {many['worker'] / 2**20:.0f} MiB"
    each = (many["peak"] - few["peak"]) / (MANY - CASES) / 2**10
    # Its id, plan and fingerprint; a result itself has about 7 KiB.
    return Line(f"memory a case, from {CASES} to {MANY} of them", each, "K", 5.0, sizes)


def _beside_dask(folder: Path, env: Mapping[str, str], specs: Path) -> Line:
    """Scheduler and two workers of one thread each are up before the clock starts."""
    local, remote = [], []
    with _scheduler(folder, {**env, **_WORKER}) as address:
        options = ["--scheduler", address]
        _batch(folder, env, specs, cases=_EACH, jobs=0, more=options)
        for _ in range(_ROUNDS):
            local.append(_batch(folder, env, specs, cases=CASES, jobs=2))
            remote.append(_batch(folder, env, specs, cases=CASES, jobs=0, more=options))
    detail = f"{statistics.median(remote):.1f} s over {statistics.median(local):.1f} s"
    name = f"batch of {CASES} cases through Dask, over local"
    return Line(name, statistics.median(remote) / statistics.median(local), "x", 1.5, detail)


@contextlib.contextmanager
def _scheduler(folder: Path, env: Mapping[str, str]) -> Iterator[str]:
    """Address of a Dask scheduler with two workers, as processes on the loopback."""
    file = folder / "scheduler.json"
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    with contextlib.ExitStack() as stack:

        def start(*words: str) -> None:
            argv = [str(Path(sys.executable).with_name("dask")), *words, *local]
            quiet = subprocess.DEVNULL
            process = subprocess.Popen(argv, env=env, cwd=folder, stdout=quiet, stderr=quiet)
            stack.callback(process.wait)
            stack.callback(process.kill)

        start("scheduler", "--port", "0", "--scheduler-file", str(file))
        address = ""
        while not address:
            time.sleep(0.1)
            with contextlib.suppress(OSError, ValueError):  # not there, or half written
                address = str(json.loads(file.read_text("utf-8"))["address"])
        for _ in range(2):
            start("worker", address, "--nthreads", "1", "--no-nanny")
        yield address


def _specs(folder: Path) -> Path:
    """Folder with one spec: gemm-bw with a suite of small shapes, the shipped kernels as its source."""
    specs = folder / "specs"
    specs.mkdir()
    spec = yaml.safe_load((resources.specs_dir() / "gemm-bw.yaml").read_text("utf-8"))
    for variant in spec["variants"].values():
        kernel = (resources.specs_dir() / variant["source"]).resolve()
        variant["source"] = os.path.relpath(kernel, specs)
    triples = [(m, n, k) for m in _SIZES for n in _SIZES for k in _SIZES]
    chosen = triples[:: len(triples) // _SHAPES][:_SHAPES]
    spec["suites"] = {"small": [{"shape": {"m": m, "n": n, "k": k}} for m, n, k in chosen]}
    (specs / "small.yaml").write_text(yaml.safe_dump(spec, sort_keys=False), "utf-8")
    return specs


def _words(folder: Path, specs: Path, cases: int, jobs: int, more: Sequence[str] = ()) -> list[str]:
    seeds = ",".join(map(str, range(cases // _EACH)))
    words = [str(specs), "--suite", "small", "--seed", seeds, "--device", "cpu"]
    words += ["-j", str(jobs)] if jobs else []
    return [*words, "--out", str(folder / "out"), *more]


def _batch(
    folder: Path,
    env: Mapping[str, str],
    specs: Path,
    *,
    cases: int,
    jobs: int,
    more: Sequence[str] = (),
) -> float:
    """Wall seconds of the whole command."""
    return run(
        [TOKITAI, "batch", *_words(folder, specs, cases, jobs, ["-q", *more])], env, folder
    ).wall


def _child(
    folder: Path, env: Mapping[str, str], specs: Path, *, cases: int, jobs: int
) -> dict[str, float]:
    """What `batch_child.py` tells of a batch."""
    argv = [PYTHON, str(_MEASURED), *_words(folder, specs, cases, jobs)]
    done = subprocess.run(
        argv, env={**os.environ, **env}, cwd=folder, capture_output=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told
