"""From a name on the command line to a spec file, and from a file to a LoadedSpec."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tokitai_cli import resources
from tokitai_cli.errors import UsageError, near
from tokitai_cli.model.case import LoadedSpec
from tokitai_cli.spec.checks import check
from tokitai_cli.spec.convert import to_spec
from tokitai_cli.spec.reader import decode, parse, read_bytes


def load(path: Path) -> LoadedSpec:
    """Read and check a spec file (UTF-8 YAML of at most 1 MiB), strictly.

    The LoadedSpec's path is absolute, its digest the sha256 of the file's bytes. Raises SpecError
    with file, line, column, dotted key and mend at the first fault in the order of the checks:
    bytes, YAML, structure, meaning.
    """
    data = read_bytes(path)
    text = decode(data, path)
    document = parse(text, path)
    spec = to_spec(document)
    check(document, spec)
    digest = hashlib.sha256(data).hexdigest()
    return LoadedSpec(spec=spec, path=path.absolute(), text=text, digest=digest)


def builtin() -> list[tuple[str, Path]]:
    """Names and files of the ops that ship with the tool, by name."""
    return sorted((path.stem, path) for path in resources.specs_dir().glob("*.yaml"))


def find(op: str) -> Path:
    """Spec file of a built-in op, or of the path `op` (with a / or .yaml, or of a file there is).

    A built-in name goes before a file of the same name. Raises UsageError for an unknown name.
    """
    ops = dict(builtin())
    if op in ops:
        return ops[op]
    looks_like_path = "/" in op or op.endswith((".yaml", ".yml"))
    if looks_like_path or (op and Path(op).exists()):
        return Path(op)
    suggestion = near(op, ops)
    mend = f"{suggestion}; " if suggestion else ""
    raise UsageError(
        f"unknown op `{op}`", mend=f"{mend}a spec file of your own is named by its path"
    )
