"""Command lines that run a case again, as evidence and terminal show them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from tokitai_cli import spec
from tokitai_cli.model.case import Case, LoadedSpec
from tokitai_cli.model.device import DeviceOptions
from tokitai_cli.pipeline.options import DEFAULT_TIMEOUT, RunOptions


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
    return run_words(options.repetitions, options.warmups, options.timeout, options.device_options)


def run_words(repetitions: int, warmups: int, timeout: float, device: DeviceOptions) -> list[str]:
    """Words for how often and how long a case runs, and for what its device was asked."""
    words = ["--repeat", str(repetitions)]
    if warmups:
        words += ["--warmup", str(warmups)]
    if timeout != DEFAULT_TIMEOUT:
        words += ["--timeout", f"{timeout:g}"]
    if device.arch:
        words += ["--arch", device.arch]
    if device.gpu:
        words += ["--gpu", str(device.gpu)]
    if device.warp_size:
        words += ["--warp-size", str(device.warp_size)]
    return words
