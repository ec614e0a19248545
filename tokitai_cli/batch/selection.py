"""What a batch selected, as words of its command line."""

from __future__ import annotations

import shlex

import msgspec

from tokitai_cli.batch.options import BatchOptions
from tokitai_cli.pipeline.commands import settings_words


def selection_words(options: BatchOptions) -> list[str]:
    """Options that decide which cases there are, folders and the shard left out."""
    words: list[str] = []
    for name, values in (
        ("suite", options.suites),
        ("op", options.ops),
        ("variant", options.variants),
        ("profile", options.profiles),
    ):
        for value in values:
            words += [f"--{name}", value]
    if options.keyword:
        words += ["-k", options.keyword]
    words += ["--seed", ",".join(map(str, options.seeds)), "--device", options.device]
    return words


def rerun_words(options: BatchOptions) -> str:
    """Shell words that repeat the batch."""
    words = ["tokitai", "batch", *map(str, options.folders), *selection_words(options)]
    words += settings_words(msgspec.structs.replace(options.settings, gpu=0))
    if options.shard is not None:
        words += ["--shard", f"{options.shard[0]}/{options.shard[1]}"]
    return shlex.join([*words, "--out", str(options.out)])
