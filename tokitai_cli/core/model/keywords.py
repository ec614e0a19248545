"""Keywords of `tokitai_cli.verify`, for editors and type checkers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict

Numbers = int | Sequence[int] | str
Names = str | Sequence[str]


class VerifyOptions(TypedDict, total=False):
    """Options of `tokitai verify`, with underscores; their meaning is that of its --help."""

    #: Values of the op's parameters: a number, a list, or text such as "16,64".
    shapes: Mapping[str, Numbers] | None
    device: str
    variant: Names
    profile: Names
    suite: str | None
    seed: Numbers
    repeat: int
    warmup: int
    timeout: float
    arch: str | None
    gpu: int
    threads: int | None
    warp_size: int | None
    sanitize: bool
    strict: bool
    watch: str
    build_only: bool
    out: str | os.PathLike[str]
    name: str | None
    format: Names
    templates: str | None
    plots: bool
    save_arrays: bool
    save_all_arrays: bool
