"""Options from `[tool.tokitai]` of the nearest pyproject.toml that has it; the command line goes before.

A key there is an option of the table without its dashes: in `[tool.tokitai]` for all verbs that have it,
in `[tool.tokitai.VERB]` for one. What chooses cases, or gives leave to run code of others, is not taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokitai_cli.core.errors import Location, UsageError, near
from tokitai_cli.core.model.options import TABLE, Kind, Option, options_of

FILE = "pyproject.toml"
_MARK = b"tokitai"
_VERBS = tuple(dict.fromkeys(verb for option in TABLE for verb in option.verbs))


def options_from_file(verb: str, folder: Path | None = None) -> dict[str, Any]:
    """Values of `verb`'s options in the file above `folder`, by name; empty without a file.

    Raises UsageError for a file that is no TOML, and for a key or value that is none, with its line.
    """
    try:
        found = _nearest(Path.cwd() if folder is None else folder)
    except FileNotFoundError:  # the working folder is gone, which the verb tells
        found = None
    if found is None:
        return {}
    path, text, table = found
    values: dict[str, Any] = {}
    own = {key: one for key, one in table.items() if isinstance(one, dict)}
    for name in own:
        if name not in _VERBS:
            fault = f"{name} is no command that takes options from {FILE}"
            raise _fault(path, text, "tool.tokitai", name, fault, near(name, _VERBS))
    known = {one.flag.removeprefix("--"): one for one in TABLE if one.in_file}
    for key in table.keys() - own.keys():
        if key not in known:
            raise _unknown(path, text, "tool.tokitai", key, "no such option", known)
    for place, of in (("tool.tokitai", table), (f"tool.tokitai.{verb}", own.get(verb, {}))):
        values |= _values(path, text, place, {key: of[key] for key in of.keys() - own.keys()}, verb)
    return values


def _nearest(folder: Path) -> tuple[Path, str, dict[str, Any]] | None:
    """The nearest file with the table, from `folder` upwards: its path, text and table."""
    for place in (folder, *folder.parents):
        path = place / FILE
        try:
            data = path.read_bytes() if path.is_file() else b""  # a pipe would block
        except OSError:
            continue
        if _MARK not in data.replace(b"\0", b""):  # also in UTF-16, which is no TOML
            continue
        import tomllib

        try:
            text = data.decode()
            table = tomllib.loads(text).get("tool", {}).get("tokitai")
        except (ValueError, AttributeError) as error:  # not UTF-8, no TOML, or `tool` is no table
            raise UsageError(f"cannot be read: {error}", where=Location(path)) from error
        if isinstance(table, dict):
            return path, text, table
        if table is not None:
            raise UsageError("tool.tokitai is no table", where=Location(path))
    return None


def _values(
    path: Path, text: str, place: str, given: Mapping[str, Any], verb: str
) -> dict[str, Any]:
    from tokitai_cli.run.run_options import option_value

    flags = {one.flag.removeprefix("--"): one for one in options_of(verb).values() if one.in_file}
    of_verb = place != "tool.tokitai"
    found = {}
    for key, value in given.items():
        if (option := flags.get(key)) is None:
            if of_verb:
                raise _unknown(path, text, place, key, f"no option of {verb}", flags)
            continue  # of another verb
        try:
            found[option.name] = option_value(option, _typed(option, value))
        except UsageError as error:
            raise _fault(path, text, place, key, error.message, error.hint) from error
    return found


def _typed(option: Option, value: Any) -> Any:
    """`value`. Raises UsageError where its type in the file is none that the option takes."""
    one = value[0] if isinstance(value, list) and value else value
    wanted: dict[Kind, tuple[type, ...]] = {
        Kind.FLAG: (bool,),
        Kind.TEXT: (str,),
        Kind.NAMES: (str,),
        Kind.NUMBER: (int,),
        Kind.NUMBERS: (int, str),
        Kind.SECONDS: (int, float),
    }
    many = option.kind in {Kind.NAMES, Kind.NUMBERS}
    fitting = type(one) in wanted[option.kind] and (many or not isinstance(value, list))
    if not fitting or (isinstance(value, list) and {*map(type, value)} != {type(one)}):
        words = " or ".join(kind.__name__ for kind in wanted[option.kind])
        raise UsageError(f"not of type {words}{', or a list of it' * many}")
    return value


def _unknown(
    path: Path, text: str, place: str, key: str, message: str, known: Mapping[str, Option]
) -> UsageError:
    if any(one.flag == f"--{key}" and not one.in_file for one in TABLE):
        hint = "it chooses cases, or is of one call; write it on the command line"
        return _fault(path, text, place, key, "only the command line takes it", hint)
    return _fault(path, text, place, key, message, near(key, known))


def _fault(
    path: Path, text: str, place: str, key: str, message: str, hint: str | None
) -> UsageError:
    where = Location(path, _line(text, place, key), key=f"{place}.{key}")
    return UsageError(message, where=where, hint=hint or "")


def _line(text: str, place: str, key: str) -> int:
    """The line that sets `key` of the table `place`, or opens it as a table; 0 where it is not found."""
    inside = False
    opened = rf"\s*\[\s*{re.escape(place)}\s*\.\s*[\"']?{re.escape(key)}[\"']?\s*\]"
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(opened, line):
            return number
        if head := re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line):
            inside = re.sub(r"[\s\"']", "", head[1]) == place
        elif inside and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return number
    return 0
