"""Options of a batch from keyword arguments, each checked on its own."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from tokitai_cli import devices
from tokitai_cli.batch.keyword import matcher
from tokitai_cli.batch.options import BatchOptions
from tokitai_cli.errors import UsageError
from tokitai_cli.model.settings import MIN_REPEAT, Settings
from tokitai_cli.pipeline.options import check_run, formats, values, words
from tokitai_cli.plan.selection import MAX_SEED

# A worker is a process with a child of its own: more of them than this are a slip of the pen.
MAX_JOBS = 1024
MAX_SHARDS = 10_000
_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def resolve(  # noqa: PLR0913 - one keyword per option of the command line
    folders: Sequence[str | Path],
    *,
    suite: Sequence[str] = (),
    op: Sequence[str] = (),
    variant: Sequence[str] = (),
    profile: Sequence[str] = (),
    keyword: str = "",
    seed: str | int | Sequence[int] = "0",
    device: str = "auto",
    repeat: int = MIN_REPEAT,
    warmup: int = 0,
    timeout: float = Settings().timeout,
    arch: str = "",
    gpu: str | int | Sequence[int] = "0",
    gpu_children: int = 1,
    warp_size: int = 0,
    jobs: int = 0,
    shard: str = "",
    out: str | Path = "reports/batch",
    format: Sequence[str] = ("md",),
    save_arrays: bool = False,
    resume: bool = False,
    fail_fast: bool = False,
    max_failures: int = 0,
) -> BatchOptions:
    """Check every option on its own and freeze them. Raises UsageError.

    suite, op, variant, profile, format: repeated options, each of which may be a comma list. keyword:
    an expression over case ids. gpu: indices. jobs: worker processes, 0 for one a core. shard: "i/n".
    fail_fast: stop at the first failure; max_failures: at so many, 0 for no limit.
    """
    if not folders or not all(map(str, folders)):
        raise UsageError(
            "no folder is named", mend="name folders with specs in them: tokitai batch ."
        )
    check_run(warp_size=warp_size, repeat=repeat, timeout=timeout, out=out)
    _at_least("warmup", warmup, 0)
    _at_least("max-failures", max_failures, 0)
    _at_least("gpu-children", gpu_children, 1)
    if fail_fast and max_failures > 1:
        raise UsageError("--fail-fast and --max-failures", mend="give one of the two")
    if device not in {"auto", "all"}:
        devices.get(device)
    matcher(keyword)
    processes, threads = _jobs(jobs)
    gpus = _within("gpu", gpu, 2**31 - 1)
    return BatchOptions(
        folders=tuple(map(Path, folders)),
        suites=words(suite),
        ops=words(op),
        variants=words(variant),
        profiles=words(profile),
        keyword=keyword,
        seeds=_within("seed", seed, MAX_SEED),
        device=device,
        settings=Settings(
            repeat=repeat,
            warmup=warmup,
            timeout=timeout,
            arch=arch,
            gpu=gpus[0],
            warp_size=warp_size,
            threads=threads,
        ),
        gpus=gpus,
        gpu_children=gpu_children,
        jobs=processes,
        shard=_shard(shard),
        out=Path(out),
        formats=formats(format),
        save_arrays=save_arrays,
        resume=resume,
        max_failures=1 if fail_fast else max_failures,
    )


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise UsageError(f"--{name} {value}: at least {least}")


def _within(name: str, given: str | int | Sequence[int], most: int) -> tuple[int, ...]:
    numbers = tuple(dict.fromkeys(values(name, given)))
    if not numbers:
        raise UsageError(f"--{name}: no {name} given", mend=f"write --{name} 0")
    for number in numbers:
        if not 0 <= number <= most:
            raise UsageError(f"--{name} {number}: not in 0 to {most}")
    return numbers


def _jobs(wanted: int) -> tuple[int, int]:
    """Processes, and threads of each: the cores are shared out among them."""
    _at_least("jobs", wanted, 0)
    if wanted > MAX_JOBS:
        raise UsageError(f"--jobs {wanted}: at most {MAX_JOBS}", mend="use more machines")
    cores = len(os.sched_getaffinity(0))
    jobs = wanted or cores
    return jobs, max(1, cores // jobs)


def _shard(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    match = _SHARD.fullmatch(text)
    index, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= index <= count <= MAX_SHARDS:
        mend = f"write i/n with i from 1 to n, at most {MAX_SHARDS}: --shard 2/4 is part 2 of 4"
        raise UsageError(f"--shard {text}: no part of a whole", mend=mend)
    return index, count
