"""The environment that a format's templates run in: sandboxed, and strict about names."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from jinja2 import FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from jinja2.sandbox import SandboxedEnvironment

from tokitai_cli import __version__, resources
from tokitai_cli.storage import file_sha256


class _TemplateCache(FileSystemBytecodeCache):
    """Compiled templates on disk; a report does without where the folder cannot be used."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


def environment(
    printed: Callable[[object], str],
    filters: Mapping[str, Callable[..., object]],
    *,
    source: str,
    cache: Path | None,
) -> SandboxedEnvironment:
    """Environment in which every value is shown by `printed`, the escaping of the format.

    source: the file that holds the escaping, which is folded into compiled constants. cache: folder
    for compiled templates, since compiling costs more than all else in a report; it must be the
    user's own, for what lies there is executed. None: no cache.
    """
    pattern = f"{__version__}-{file_sha256(source)[:16]}-%s.template"
    made = SandboxedEnvironment(
        loader=FileSystemLoader(resources.templates_dir()),
        undefined=StrictUndefined,
        finalize=printed,
        autoescape=False,  # `printed` escapes; Jinja knows HTML alone
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=None if cache is None else _TemplateCache(str(cache), pattern),
    )
    made.filters.update(shell=shlex.join, **filters)
    return made
