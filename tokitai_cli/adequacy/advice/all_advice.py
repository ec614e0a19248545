"""All advice for a spec, and the spec's file with it."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterable, Iterator

import msgspec
import yaml

from tokitai_cli import spec
from tokitai_cli.adequacy.advice.edit import Advice, edited
from tokitai_cli.adequacy.advice.fixed_settings import of_settings, of_wide_integers
from tokitai_cli.adequacy.advice.formula_changes import of_formulas
from tokitai_cli.adequacy.advice.kernel_branches import of_values
from tokitai_cli.adequacy.advice.suite_shapes import of_shapes
from tokitai_cli.adequacy.advice.tested_numbers import of_expressions
from tokitai_cli.core import storage
from tokitai_cli.core.errors import StorageError, TokitaiError, UsageError
from tokitai_cli.core.model.case import BufferArg, Case, LoadedSpec, ScalarValue, StructArg
from tokitai_cli.run.specs import check_oracles
from tokitai_cli.spec import plan


def advise(loaded: LoadedSpec) -> Iterator[Advice]:
    """What the spec cannot tell: of shapes, of settings, of values that a
    kernel branches on, then of checks and profiles. Runs no kernel.
    """
    yield from itertools.chain(
        of_shapes(loaded),
        of_settings(loaded),
        of_expressions(loaded),
        of_wide_integers(loaded),
        of_values(loaded),
        of_formulas(loaded),
    )


def apply(loaded: LoadedSpec, advice: Iterable[Advice]) -> tuple[int, list[str]]:
    """Write the spec's file with all edits that leave it a spec: how many, and why others do not.

    Raises UsageError for a spec that ships with the tool or has changed meanwhile, StorageError where
    the file cannot be written; UsageError too where it is write-protected.
    """
    if (loaded.path.stem, loaded.path) in spec.builtin():
        hint = "copy it, with its kernel, and name the copy"
        raise UsageError(f"{loaded.spec.op} ships with the tool: it is not changed", hint=hint)
    text, done, refused = loaded.text, 0, []
    for one in advice:
        if not one.edits:
            continue
        try:
            new = edited(text, one.edits)
            _require_whole(loaded, new)
        except (TokitaiError, LookupError, TypeError, ValueError, yaml.YAMLError) as error:
            refused.append(f"{one.text}: skipped, because the spec would become invalid: {error}")
            continue
        text, done = new, done + 1
    if done:
        _write(loaded, text)
    return done, refused


def _write(loaded: LoadedSpec, text: str) -> None:
    """Write the text in place of the spec's, with the mark of byte order and the mode that it had."""
    data, path = spec.file_bytes(loaded), loaded.path
    if data != storage.read_plain(path):
        raise UsageError(f"{path} has changed meanwhile", hint="run it again")
    if not (path.stat().st_mode & 0o222 and os.access(path, os.W_OK)):
        raise UsageError(f"{path} is write-protected", hint=f"chmod u+w {path}")
    front = data[: len(data) - len(loaded.text.encode())]
    try:
        storage.write(path, front + text.encode(), mode=stat.S_IMODE(path.stat().st_mode))
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from None


def _require_whole(loaded: LoadedSpec, text: str) -> None:
    """Raise where the text is no spec, has a suite without cases, or no longer has a case of before."""
    new = spec.load(loaded.path, text.encode())
    check_oracles(new)
    for suite in new.spec.suites:
        cases = plan.plan(new, plan.Selection(suite=suite)).cases
        if suite in loaded.spec.suites:
            kept = {_content(one, loaded) for one in cases}
            for one in plan.plan(loaded, plan.Selection(suite=suite)).cases:
                if _content(one, loaded) not in kept:
                    raise UsageError(f"the case {one.id} would change")


def _content(case: Case, loaded: LoadedSpec) -> str:
    """What a case is, by the sizes that the spec had before."""
    shape = tuple(case.shape[name] for name in loaded.spec.params)
    launches = [
        msgspec.structs.replace(one, args=tuple(map(_nameless, one.args))) for one in case.launches
    ]
    return repr((case.variant_name, case.profile, shape, case.buffers, launches))


def _nameless(
    argument: BufferArg | ScalarValue | StructArg,
) -> BufferArg | ScalarValue | StructArg:
    """An argument with no word of what a number is called in the spec."""
    if isinstance(argument, StructArg):
        fields = [(field, _nameless(held)) for field, held in argument.fields]
        held = tuple((field, one) for field, one in fields if not isinstance(one, StructArg))
        return StructArg(argument.name, held)
    is_number = isinstance(argument, ScalarValue)
    return msgspec.structs.replace(argument, name="") if is_number else argument
