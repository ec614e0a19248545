"""`sanitize OP`, and `sanitize` of sources, which need no spec."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokitai_cli.cli import typer_options
from tokitai_cli.cli.verbs.json_option import print_json
from tokitai_cli.cli.verbs.verify import run_op

if TYPE_CHECKING:
    from tokitai_cli.core.model.case import LoadedSpec


def verb(words: Sequence[str]) -> typer_options.Verb:
    """The verb, with the parameters of the op that the command line names as options."""
    return typer_options.with_op(
        _sanitize, "sanitize", words, is_source=lambda word: bool(_source(word))
    )


def _sanitize(op: str | LoadedSpec, shapes: Mapping[str, Any], **given: Any) -> int:
    """Find memory errors, races and misused barriers.

    Runs kernels under the device's sanitizer. A source file needs no spec.

    Example: tokitai sanitize kernel.cu
    """
    from tokitai_cli.run.sanitizing import sanitize
    from tokitai_cli.run.specs import load_op

    if isinstance(op, str) and (source := _source(op)):
        return _sources(*source, given)
    loaded = load_op(op, judged=False) if isinstance(op, str) else op
    # Beside the evidence of `verify`, not over it.
    given["name"] = f"{loaded.spec.op}-sanitize" if given["name"] is None else given["name"]
    if given["suite"] is None and not shapes and "quick" in loaded.spec.suites:
        given["suite"] = "quick"
    return run_op("sanitize", sanitize, loaded, shapes, given)


def _source(word: str) -> tuple[Path, str] | None:
    """The source or folder that a word names, with the kernel of FILE:KERNEL; None for another word."""
    from tokitai_cli.cpp.source_text import SUFFIXES

    for path, kernel in ((word, ""), word.rpartition(":")[::2]):
        if path and (Path(path).is_dir() or Path(path).suffix.lower() in SUFFIXES):
            return Path(path), kernel
    return None


def _sources(path: Path, kernel: str, given: Mapping[str, Any]) -> int:
    """Draft the kernels of a source or folder, and watch each at the host's sizes."""
    from tokitai_cli.cli import terminal
    from tokitai_cli.core.errors import UsageError
    from tokitai_cli.core.model.device import SANITIZED
    from tokitai_cli.core.model.verdict import worst
    from tokitai_cli.drafts.trial.sanitized import watched
    from tokitai_cli.run.run_options import run_options

    for option in ("suite", "variant", "profile", "name"):
        if given[option]:
            hint = f"`tokitai new {path} --out DIR` writes a spec"
            raise UsageError(f"--{option} is for a spec, not for a source", hint=hint)
    if given["device"] != SANITIZED[0]:
        raise UsageError(f"a source is checked on {SANITIZED[0]}, not on {given['device']}")
    work, front = typer_options.split("sanitize", given)
    kernels = []
    for one in watched(path, kernel, lambda loaded: run_options(loaded, verb="sanitize", **work)):
        kernels.append(one)
        if not front["quiet"]:
            sys.stderr.write(f"{one.place} {one.kernel}: {one.outcome}\n")
    if front["json"]:
        print_json(kernels)
    else:
        terminal.show_watched(kernels)
    return worst(one.verdict for one in kernels).exit_code
