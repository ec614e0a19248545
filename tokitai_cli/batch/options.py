"""What a batch was asked to do, resolved once and frozen."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tokitai_cli.model.settings import Settings


class BatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one batch.

    folders: where specs are looked for; files name one spec each. suites, ops, variants, profiles:
    names, empty for all (suites: `quick` where a spec has it, else its default shape). keyword: an
    expression over case ids. device: as for a run. gpus: indices that workers may use, gpu_children
    at a time on each. jobs: worker processes. shard: (i, n), 1 <= i <= n, or None. save_arrays: keep
    those of failing cases. max_failures: 0 for no limit. formats: of each spec's report, beside JSON.
    """

    folders: tuple[Path, ...]
    suites: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    keyword: str = ""
    seeds: tuple[int, ...] = (0,)
    device: str = "auto"
    settings: Settings = Settings()
    gpus: tuple[int, ...] = (0,)
    gpu_children: int = 1
    jobs: int = 1
    shard: tuple[int, int] | None = None
    out: Path = Path("reports/batch")
    formats: tuple[str, ...] = ("md",)
    save_arrays: bool = False
    resume: bool = False
    max_failures: int = 0
