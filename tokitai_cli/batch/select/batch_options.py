"""What a batch was asked to do, resolved once and frozen."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli import devices, report
from tokitai_cli.core.case_filter import matcher
from tokitai_cli.core.errors import UsageError
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.run.commands import option_words, settings_words
from tokitai_cli.run.run_options import check_surroundings, checked, report_options_of, settings_of
from tokitai_cli.run.sanitizing import check_sanitized

MAX_SHARDS = 10_000
_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


class BatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one batch."""

    #: Where specs are looked for; files name one spec each.
    folders: tuple[Path, ...]
    #: Names, empty for all (suites: default: `quick` if a spec has it, otherwise its default shape).
    suites: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    #: An expression over case ids.
    keyword: str = ""
    seeds: tuple[int, ...] = (0,)
    #: As for a run.
    device: str = "auto"
    settings: Settings = Settings()
    #: Indices that workers may use, gpu_children at a time on each.
    gpus: tuple[int, ...] = (0,)
    gpu_children: int = 1
    #: Worker processes.
    jobs: int = 1
    #: (i, n), 1 <= i <= n, or None.
    shard: tuple[int, int] | None = None
    out: Path = Path("reports/batch")
    #: Of each spec's report, beside JSON.
    formats: tuple[str, ...] = ("md",)
    report_options: report.ReportOptions = report.ReportOptions()
    #: Keep those of failing cases.
    save_arrays: bool = False
    save_all_arrays: bool = False
    resume: bool = False
    #: 0 for no limit.
    max_failures: int = 0


def batch_options(folders: Sequence[str | Path], **options: Any) -> BatchOptions:
    """Check every option of `batch` on its own and freeze them. Raises UsageError."""
    if not folders or not all(map(str, folders)):
        raise UsageError(
            "no folder is named", hint="name folders with specs in them: tokitai batch ."
        )
    check_surroundings()
    given = checked("batch", options)
    most = given["max_failures"] or 0
    if given["fail_fast"] and most > 1:
        raise UsageError("--fail-fast and --max-failures", hint="give one of the two")
    if given["device"] not in {"auto", "all"}:
        devices.get(given["device"])
        if given["sanitize"]:
            check_sanitized(given["device"])
    keyword = given["keyword"] or ""
    matcher(keyword)
    cores = len(os.sched_getaffinity(0))
    jobs = given["jobs"] or cores
    gpus = given.pop("gpu")
    return BatchOptions(
        folders=tuple(map(Path, folders)),
        suites=given["suite"],
        ops=given["op"],
        variants=given["variant"],
        profiles=given["profile"],
        keyword=keyword,
        seeds=given["seed"],
        device=given["device"],
        # The cores are shared out among the workers.
        settings=settings_of(given, gpu=gpus[0], threads=max(1, cores // jobs)),
        gpus=gpus,
        gpu_children=given["gpu_children"],
        jobs=jobs,
        shard=_shard(given["shard"]),
        out=Path(given["out"]),
        formats=given["format"],
        report_options=report_options_of(given),
        save_arrays=given["save_arrays"],
        save_all_arrays=given["save_all_arrays"],
        resume=given["resume"],
        max_failures=1 if given["fail_fast"] else most,
    )


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = _SHARD.fullmatch(text)
    index, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= index <= count <= MAX_SHARDS:
        hint = f"write i/n with i from 1 to n, at most {MAX_SHARDS}: --shard 2/4 is part 2 of 4"
        raise UsageError(f"--shard {text}: not a part of the batch", hint=hint)
    return index, count


def selection_words(options: BatchOptions) -> list[str]:
    """Options that decide which cases there are, folders and the shard left out."""
    chosen = {
        "suite": options.suites,
        "op": options.ops,
        "variant": options.variants,
        "profile": options.profiles,
        "keyword": options.keyword,
        "seed": options.seeds,
    }
    return option_words("batch", chosen) + option_words("batch", {"device": options.device})


def rerun_words(options: BatchOptions) -> str:
    """Shell words that repeat the batch."""
    words = ["tokitai", "batch", *map(str, options.folders), *selection_words(options)]
    words += settings_words("batch", options.settings, gpu=options.gpus)
    shard = None if options.shard is None else f"{options.shard[0]}/{options.shard[1]}"
    words += option_words("batch", {"shard": shard})
    return shlex.join([*words, "--out", str(options.out)])
