"""Command lines that run a case again, as evidence and terminal show them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from tokitai_cli import spec
from tokitai_cli.model.case import Case, LoadedSpec
from tokitai_cli.model.settings import Settings
from tokitai_cli.pipeline.options import RunOptions


def rerun_case(case: Case, device: str, options: RunOptions) -> str:
    """Shell words that run exactly this case on this device."""
    words = [*_start(options), "--variant", case.variant_name, "--profile", case.profile]
    for name, value in case.shape.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join([*words, "--seed", str(case.seed), "--device", device, *_common(options)])


def rerun_run(options: RunOptions) -> str:
    """Shell words that repeat the whole run."""
    selection = options.selection
    words = _start(options)
    for name, values in selection.shapes.items():
        words += [f"--{name.replace('_', '-')}", _comma(values)]
    for variant in selection.variants:
        words += ["--variant", variant]
    for profile in selection.profiles:
        words += ["--profile", profile]
    if selection.suite:
        words += ["--suite", selection.suite]
    words += ["--seed", _comma(selection.seeds), "--device", options.device]
    return shlex.join([*words, *_common(options)])


def _comma(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


def _start(options: RunOptions) -> list[str]:
    return ["tokitai", options.verb, options.called or called(options.loaded)]


def called(loaded: LoadedSpec) -> str:
    """How a command line names a spec: a built-in one by its op, another by its path from here."""
    op = loaded.spec.op
    builtin = dict(spec.builtin()).get(op) == loaded.path
    return op if builtin else _from_here(loaded.path)


def _from_here(path: Path) -> str:
    """`path` relative to the working folder where it lies under it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _common(options: RunOptions) -> list[str]:
    return settings_words(options.settings)


def settings_words(settings: Settings) -> list[str]:
    """Words for how often and how long a case runs, and for what its device was asked."""
    words = ["--repeat", str(settings.repeat)]
    if settings.warmup:
        words += ["--warmup", str(settings.warmup)]
    if settings.timeout != Settings().timeout:
        words += ["--timeout", f"{settings.timeout:g}"]
    if settings.arch:
        words += ["--arch", settings.arch]
    if settings.gpu:
        words += ["--gpu", str(settings.gpu)]
    if settings.warp_size:
        words += ["--warp-size", str(settings.warp_size)]
    return words
