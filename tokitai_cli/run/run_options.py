"""What a run was asked to do, resolved once and frozen."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli import report
from tokitai_cli.core import process
from tokitai_cli.core.errors import Location, SpecError, UsageError, near
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.options import (
    WATCH_VARIABLE,
    WATCHES,
    Kind,
    Option,
    flag,
    options_of,
)
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.wording import visible
from tokitai_cli.run.specs import load_op
from tokitai_cli.spec.plan import Selection, expand_values

# File systems take 255; the longest addition is .NAME.cases.jsonl.RANDOM.tmp.
MAX_NAME_BYTES = 200
# Neither a generated source, a Makefile's dependencies nor a line of a log could hold them.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Of a text: no system takes a longer path.
_MAX_BYTES = 4096
_MENDS = {"repeat": "never-written elements are detected only with two complementary sentinels"}

# Of an option that takes several: one, several, or text as `expand_values` takes it.
Numbers = str | int | Sequence[int | str]


class RunOptions(msgspec.Struct, frozen=True):
    """Options of one run."""

    loaded: LoadedSpec
    selection: Selection
    device: str = "auto"
    settings: Settings = Settings()
    out: Path = Path("reports")
    name: str = ""
    formats: tuple[str, ...] = ("md",)
    report_options: report.ReportOptions = report.ReportOptions()
    save_arrays: bool = False
    save_all_arrays: bool = False
    build_only: bool = False
    #: Of `WATCHES`.
    watch: str = "off"
    verb: str = "verify"
    #: How a command line names the spec, where that is not by the path that it was read from.
    called: str = ""
    #: Shell words that repeat the run, where the selection does not say them.
    rerun: str = ""


def run_options(
    op: str | LoadedSpec,
    *,
    shapes: Mapping[str, Numbers] | None = None,
    verb: str = "verify",
    **options: Any,
) -> RunOptions:
    """Check every option of `verb` on its own and freeze them. Raises UsageError and SpecError.

    `shapes` maps params of the op to a value, a list, or text such as "16,64" or "64:256:64".
    """
    check_surroundings()
    given = checked(verb, options)
    name = given["name"]
    if name is not None and (name != Path(name).name or name.startswith(".")):
        raise UsageError(f"--name {name}: must be a plain file name without folders")
    if name is not None and name != visible(name):
        raise UsageError(f"--name {visible(name)}: contains an invisible character")
    loaded = op if isinstance(op, LoadedSpec) else load_op(op)
    check_text(loaded.path)
    name = name or loaded.spec.op
    if len(name.encode(errors="surrogateescape")) > MAX_NAME_BYTES:
        raise UsageError(f"--name: longer than {MAX_NAME_BYTES} bytes", hint="use a shorter name")
    return RunOptions(
        loaded=loaded,
        selection=Selection(
            shapes=_shapes(loaded, shapes or {}),
            variants=given["variant"],
            profiles=given["profile"],
            seeds=given["seed"],
            suite=given["suite"],
        ),
        device=given["device"],
        settings=settings_of(given),
        out=Path(given["out"]),
        name=name,
        formats=given["format"],
        report_options=report_options_of(given),
        save_arrays=given["save_arrays"],
        save_all_arrays=given["save_all_arrays"],
        build_only=given.get("build_only", False),
        watch=(given["watch"] or watch_by_itself()) if "watch" in given else "off",
        verb=verb,
    )


def watch_by_itself() -> str:
    """How much is watched where no option says it. Raises UsageError for what is none of `WATCHES`."""
    found = os.environ.get(WATCH_VARIABLE) or WATCHES[0]
    if found not in WATCHES:
        raise UsageError(f"{WATCH_VARIABLE}={visible(found)}: not {' or '.join(WATCHES)}")
    return found


def check_surroundings() -> None:
    """Raise UsageError or StorageError where nothing can run: the working folder is gone, or TMPDIR."""
    try:
        Path.cwd()
    except OSError:
        hint = "change to an existing folder"
        raise UsageError("the working folder no longer exists", hint=hint) from None
    process.temporary_base()


def checked(verb: str, given: Mapping[str, Any], *, front: bool = False) -> dict[str, Any]:
    """Every option of `verb` with its value, or with its default where it is left out or None.

    front: those of the command line alone instead of all others. Raises UsageError for a name that is
    no option and for a value that cannot be meant; nothing is never taken for everything.
    """
    options = {name: one for name, one in options_of(verb).items() if one.front == front}
    for name in given:
        if name not in options:
            raise UsageError(f"{verb} has no option {flag(name)}", hint=near(name, options))
    found = {}
    for name, option in options.items():
        value = given.get(name)
        found[name] = option.default_of(verb) if value is None else option_value(option, value)
    return found


def report_options_of(given: Mapping[str, Any]) -> report.ReportOptions:
    """How reports are asked for. Raises UsageError where that cannot be."""
    folder = given["templates"]
    report_options = report.ReportOptions(
        templates=Path(folder) if folder else None, plots=given["plots"]
    )
    report.check_report_options(report_options)
    return report_options


def settings_of(given: Mapping[str, Any], **more: Any) -> Settings:
    """Settings of a run or a batch from its options and what is known `more` of them."""
    known = {name: given[name] for name in Settings.__struct_fields__ if name in given}
    return Settings(**{name: one for name, one in (known | more).items() if one is not None})


def option_value(option: Option, value: Any) -> Any:
    """`value` as runs take it. Raises UsageError where it is none that the option takes."""
    if option.kind is Kind.FLAG:
        return bool(value)
    if option.kind is Kind.NAMES:
        names = _names(option, value)
        return tuple(map(report.check_format, names)) if option.name == "format" else names
    if option.kind is Kind.NUMBERS:
        return tuple(_limited(option, one) for one in values(option.name, value))
    if option.kind is Kind.TEXT:
        return _limited(option, _filled(option, str(value)))
    return _limited(option, value)


def _filled(option: Option, word: str) -> str:
    """`word`. Raises UsageError where it is empty, which would mean all without a word of it."""
    if not word.strip():
        hint = f"write {option.flag} {option.metavar}, or omit the option"
        raise UsageError(f"{option.flag}: an empty value", hint=hint)
    if len(word.encode(errors="surrogateescape")) > _MAX_BYTES:
        raise UsageError(f"{option.flag}: longer than {_MAX_BYTES} bytes")
    if _CONTROLS.search(word):
        message = f"{option.flag} {visible(word)}: a line break or another control character"
        raise UsageError(message)
    return word


def _names(option: Option, value: str | Sequence[str]) -> tuple[str, ...]:
    """Repeated options and comma lists, in order, without repeats."""
    given = (value,) if isinstance(value, str) else value
    words = [word.strip() for one in given for word in one.split(",")]
    return tuple(dict.fromkeys(_filled(option, word) for word in words))


def _limited(option: Option, value: Any) -> Any:
    """`value`. Raises UsageError where it is none that the option takes."""
    least, most, where = option.least, option.most, f"{option.flag} {value}"
    if option.kind in {Kind.NUMBER, Kind.NUMBERS} and type(value) is not int:
        raise UsageError(f"{where}: no integer")
    if option.kind is Kind.SECONDS and type(value) not in {int, float}:
        raise UsageError(f"{where}: no number")
    if option.choices and value not in option.choices:
        raise UsageError(f"{where}: not {' or '.join(map(str, option.choices))}")
    if option.kind is Kind.SECONDS and not (math.isfinite(value) and value > 0):
        raise UsageError(f"{where}: seconds, more than 0")
    if least is not None and value < least:
        raise UsageError(f"{where}: at least {least}", hint=_MENDS.get(option.name, ""))
    if most is not None and value > most:
        raise UsageError(f"{where}: at most {most}")
    return value


def check_text(path: Path) -> None:
    """Raise SpecError for a path that no generated source, digest or JSON could name."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        hint = "rename the folder or file, or run in a UTF-8 locale (LC_ALL=C.UTF-8)"
        raise SpecError("the path is not UTF-8 text", where=Location(path), hint=hint) from None
    if _CONTROLS.search(str(path)):
        message = "a line break or another control character in the path"
        raise SpecError(message, where=Location(path), hint="rename the folder or file")


def _shapes(loaded: LoadedSpec, shapes: Mapping[str, Numbers]) -> dict[str, tuple[int, ...]]:
    for name in shapes:
        if name not in loaded.spec.params:
            raise UsageError(
                f"{loaded.spec.op} has no parameter {name}", hint=near(name, loaded.spec.params)
            )
    return {name: values(name, value) for name, value in shapes.items()}


def values(name: str, given: Numbers) -> tuple[int, ...]:
    """Integers of an option `name`, in order, without repeats. Raises UsageError for none."""
    parts = (given,) if isinstance(given, (int, str)) else given
    found: dict[int, None] = {}
    for part in parts:
        found |= dict.fromkeys(expand_values(name, part) if isinstance(part, str) else (part,))
    if not found:
        raise UsageError(f"{flag(name)}: no value given", hint="leave it out, or give one")
    return tuple(found)
