"""Evidence files: atomic writing, and reading that takes nothing on trust."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from tokitai_cli.core import storage
from tokitai_cli.core.errors import DamagedError, EvidenceError, Location
from tokitai_cli.core.model.evidence import EVIDENCE_SCHEMA, CasesFileRecord, Evidence
from tokitai_cli.core.model.judged import Record
from tokitai_cli.evidence.encoding import case_to_json, sealed, to_json, tree_digest
from tokitai_cli.evidence.upgrade import READABLE, upgraded

MOST_CASES_INSIDE = 1000

_T = TypeVar("_T", bound=Record)
# Escapes of surrogates, which are characters in pairs alone.
_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")


def write_file(path: Path, data: bytes | Iterable[bytes], *, durable: bool = True) -> None:
    """Write a file so that `path` holds either what it held or all of `data`, maybe in pieces.

    durable: it outlives a loss of power from here on. Raises EvidenceError where the folder or the
    file cannot be written.
    """
    try:
        storage.write(path, data, durable=durable)
    except OSError as error:
        raise EvidenceError(
            f"cannot be written: {error.strerror or error}",
            where=Location(path),
            hint="give another place with --out",
        ) from error


def write(evidence: Evidence, path: Path) -> None:
    """Write `evidence`, as `assemble` gives it, to `path`.

    Above 1000 cases they go to NAME.cases.jsonl beside it, one a line, written first. Raises
    EvidenceError where that cannot be done.
    """
    if len(evidence.cases) > MOST_CASES_INSIDE:
        lines = "".join(map(case_to_json, evidence.cases)).encode()
        beside = path.with_name(f"{path.stem}.cases.jsonl")
        write_file(beside, lines)
        record = CasesFileRecord(
            name=beside.name,
            sha256=storage.sha256(lines),
            cases=len(evidence.cases),
        )
        evidence = msgspec.structs.replace(evidence, cases=[], cases_file=record)
    write_file(path, to_json(evidence, is_normal=True).encode())


def read(path: Path, *, most: int | None = None) -> Evidence:
    """Read evidence of this schema, or of an earlier one, and check its digest.

    most: bytes of each of its files. Raises EvidenceError: not there, not JSON, of another kind or
    schema version, not of the form that the schema says; DamagedError where it is not what was written.
    The digest is unsigned and shows accidental damage only.
    """
    tree = _parse(_load(path, most), path)
    _check_schema(tree, path, READABLE, "evidence file")
    if isinstance(tree.get("cases_file"), dict):
        tree = _with_cases(tree, path, most)
    try:
        evidence = msgspec.convert(upgraded(tree), Evidence)
    except msgspec.ValidationError as error:
        raise _misfit(error, path, tree["schema"]) from error
    except (AttributeError, LookupError, TypeError) as error:
        raise EvidenceError(f"does not follow {tree['schema']}", where=Location(path)) from error
    if tree_digest(tree) != evidence.digest:
        raise DamagedError(
            "is damaged: its content does not have the digest that it states",
            where=Location(path, key="digest"),
            hint="get the file from its source again; a digest without a signature shows "
            "accidental damage only, not tampering",
        )
    return _resealed(evidence)


def _resealed(evidence: Evidence) -> Evidence:
    """Evidence with the digest of its present form; a note keeps that of an older one."""
    now = sealed(evidence)
    if now.digest == evidence.digest or any(evidence.digest in note for note in now.volatile.notes):
        return now
    note = f"written by an earlier version, with the digest {evidence.digest}"
    told = msgspec.structs.replace(now.volatile, notes=[*now.volatile.notes, note])
    return msgspec.structs.replace(now, volatile=told)


def read_record(path: Path, kind: type[_T], schema: str, what: str) -> _T:
    """Read another of the tool's JSON files, whose objects are of the `kind` and name the `schema`.

    Raises EvidenceError as `read` does; there is no digest to be checked.
    """
    tree = _parse(_load(path), path)
    _check_schema(tree, path, (schema,), what)
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        raise _misfit(error, path, schema) from error


def _load(path: Path, most: int | None = None) -> bytes:
    try:
        return storage.read_plain(path, most)
    except OSError as error:
        raise EvidenceError(
            f"cannot be read: {error.strerror or error}",
            where=Location(path),
            hint="give the .json file that a run wrote",
        ) from error


def _parse(data: bytes, path: Path, line: int = 0) -> dict[str, Any]:
    """Parse a JSON object; stricter than json.loads: no NaN tokens, no repeated keys, no overflow."""
    try:
        tree = json.loads(
            data.decode(),
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_unique,
        )
    except json.JSONDecodeError as error:
        where = Location(path, line or error.lineno, error.colno)
        raise EvidenceError(f"is not JSON: {error.msg}", where=where) from error
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"is not strict JSON: {error}", where=Location(path, line)) from error
    except MemoryError as error:
        told = "needs more memory than there is"
        raise EvidenceError(told, where=Location(path, line)) from error
    if _HALVES.search(data) and not _is_text(tree):
        told = "is not strict JSON: it contains half of a surrogate pair"
        raise EvidenceError(told, where=Location(path, line))
    if not isinstance(tree, dict):
        raise EvidenceError("is JSON, but not an object", where=Location(path, line))
    return tree


def _is_text(tree: object) -> bool:
    try:
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_constant(token: str) -> NoReturn:
    raise ValueError(f"the token {token} is not JSON")


def _finite(token: str) -> float:
    value = float(token)
    if not math.isfinite(value):
        raise ValueError(f"the number {token} is too large for float64")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in pairs:
        if key in tree:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        tree[key] = value
    return tree


def _check_schema(tree: dict[str, Any], path: Path, known: Sequence[str], what: str) -> None:
    """Refuse what names none of the `known` schemas, of which the first is the present one."""
    name, schema = tree.get("schema"), known[0]
    if name in known:
        return
    where = Location(path, key="schema")
    family, _, ours = schema.rpartition("v")
    version = name.removeprefix(f"{family}v") if isinstance(name, str) else ""
    if isinstance(name, str) and name.startswith(family) and version.isdecimal():
        version = version.lstrip("0")
        if (len(version), version) > (len(ours), ours):
            raise EvidenceError(
                f"has the newer schema {name}; this version reads {schema}",
                where=where,
                hint="install the version of tokitai that wrote it, or a later one",
            )
        raise EvidenceError(
            f"has the older schema {name}; this version reads {schema}",
            where=where,
            hint="run the command in its field `rerun` again",
        )
    told = f"has the schema {name!r}" if isinstance(name, str) else "names no schema"
    raise EvidenceError(
        f"is no {what}: it {told}, not {schema!r}",
        where=where,
        hint="give the .json file that a run wrote",
    )


def _with_cases(tree: dict[str, Any], path: Path, most: int | None) -> dict[str, Any]:
    """Put the cases of the file beside back in their place."""
    try:
        record = msgspec.convert(tree["cases_file"], CasesFileRecord)
    except msgspec.ValidationError as error:
        raise _misfit(error, path, EVIDENCE_SCHEMA) from error
    if Path(record.name).name != record.name or not record.name.endswith(".cases.jsonl"):
        raise EvidenceError(
            f"names {record.name!r}, which is not a plain file name that ends in .cases.jsonl",
            where=Location(path, key="cases_file.name"),
        )
    beside = path.with_name(record.name)
    if beside.is_symlink():
        raise EvidenceError("is a link, which is not followed", where=Location(beside))
    data = _load(beside, most)
    lines = data.splitlines()
    if storage.sha256(data) != record.sha256 or len(lines) != record.cases:
        raise DamagedError(
            f"is damaged: it is not the file that {path.name} was written with",
            where=Location(beside),
            hint="get both files from their source again",
        )
    cases = [_parse(line, beside, at) for at, line in enumerate(lines, start=1)]
    return {**tree, "cases": cases, "cases_file": None}


def _misfit(error: msgspec.ValidationError, path: Path, schema: str) -> EvidenceError:
    message, _, place = str(error).partition(" - at `")
    key = re.sub(r"^\$\.?|`$", "", place)
    message = message.replace("Object contains", "there is an").replace(
        "Object missing", "lacks the"
    )
    return EvidenceError(
        f"does not follow {schema}: {message}",
        where=Location(path, key=key),
        hint="only files that tokitai wrote can be read",
    )
