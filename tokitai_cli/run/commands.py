"""Command lines that run a case again, as evidence and terminal show them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli import spec
from tokitai_cli.core import storage
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.options import Kind, flag, options_of
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.run.run_options import RunOptions, watch_by_itself


def rerun_case(case: Case, device: str, options: RunOptions) -> str:
    """Shell words that run exactly this case on this device."""
    shape = {name: (value,) for name, value in case.shape.items()}
    both = options.selection.variants if options.verb == "compare" else (case.variant_name,)
    chosen = {"variant": both, "profile": (case.profile,)}
    one = option_words(options.verb, chosen) + _shape_words(shape)
    return _line(options, one, (case.seed,), device)


def rerun_run(options: RunOptions) -> str:
    """Shell words that repeat the whole run."""
    selection = options.selection
    chosen = {
        "variant": selection.variants,
        "profile": selection.profiles,
        "suite": selection.suite,
        "build_only": options.build_only,
        "watch": None if options.watch == watch_by_itself() else options.watch,
    }
    words = _shape_words(selection.shapes) + option_words(options.verb, chosen)
    return _line(options, words, selection.seeds, options.device)


def _line(options: RunOptions, chosen: list[str], seeds: Sequence[int], device: str) -> str:
    verb = options.verb
    words = ["tokitai", verb, options.called or called(options.loaded), *chosen]
    words += option_words(verb, {"seed": seeds}) + option_words(verb, {"device": device})
    return shlex.join(words + settings_words(verb, options.settings))


def _shape_words(shapes: Mapping[str, Iterable[int]]) -> list[str]:
    return [word for name, values in shapes.items() for word in (flag(name), _comma(values))]


def _comma(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


def called(loaded: LoadedSpec) -> str:
    """How a command line names a spec: a built-in one by its op, another by its path from here."""
    op = loaded.spec.op
    builtin = dict(spec.builtin()).get(op) == loaded.path
    return op if builtin else from_here(loaded.path)


def from_here(path: Path) -> str:
    """`path` relative to the working folder where it lies under it, or where both lie in one home."""
    here, home = Path.cwd(), storage.home()
    if path.is_relative_to(here):
        return str(path.relative_to(here))
    at_home = home is not None and path.is_relative_to(home) and here.is_relative_to(home)
    return os.path.relpath(path, here) if at_home else str(path)


def settings_words(verb: str, settings: Settings, **more: Any) -> list[str]:
    """Words for how often and how long a case runs, and for what its device was asked.

    Nothing hangs on the number of threads, which is a machine's own.
    """
    settings = msgspec.structs.replace(settings, threads=0)
    return option_words(verb, msgspec.structs.asdict(settings) | more)


def option_words(verb: str, values: Mapping[str, Any]) -> list[str]:
    """Words that give `verb` those of the values that it has an option for, in the table's order.

    An option that is left out, or has its default anyway, needs no words, but where the default is to
    be stated.
    """
    words: list[str] = []
    for name, option in options_of(verb).items():
        value = values.get(name)
        needless = value == option.default_of(verb) and not option.stated
        if needless or value in (None, 0, "", ()):
            continue
        word = option.short or option.flag
        match option.kind:
            case Kind.FLAG:
                words.append(word)
            case Kind.NAMES:
                words += [part for one in value for part in (word, one)]
            case Kind.NUMBERS:
                words += [word, _comma(value)]
            case Kind.SECONDS:
                words += [word, f"{value:g}"]
            case _:
                words += [word, str(value)]
    return words
