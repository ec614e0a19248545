"""What a batch selected, as words of its command line."""

from __future__ import annotations

import shlex

from tokitai_cli.batch.options import BatchOptions


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
    settings = options.settings
    words = ["tokitai", "batch", *map(str, options.folders), *selection_words(options)]
    words += ["--repeat", str(settings.repetitions)]
    if settings.warmups:
        words += ["--warmup", str(settings.warmups)]
    if settings.timeout != type(settings)().timeout:
        words += ["--timeout", f"{settings.timeout:g}"]
    if settings.arch:
        words += ["--arch", settings.arch]
    if settings.warp_size:
        words += ["--warp-size", str(settings.warp_size)]
    if options.shard is not None:
        words += ["--shard", f"{options.shard[0]}/{options.shard[1]}"]
    return shlex.join([*words, "--out", str(options.out)])
