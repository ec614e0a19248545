"""Compiled templates on disk: compiling them costs more than everything else in a report."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from tokitai_cli import __version__
from tokitai_cli.report import markdown

_DIGEST_BYTES = 32


class TemplateCache(BytecodeCache):
    """Compiled templates in `folder`, which must be the user's own: what lies there is executed.

    A file holds the sha256 of what follows, so that a damaged one is compiled again. Names change
    with the tool's version and with the escaping, which is folded into compiled constants.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        source = Path(markdown.__file__).read_bytes()
        self._salt = __version__.encode() + hashlib.sha256(source).digest()

    def _path(self, bucket: Bucket) -> Path:
        name = hashlib.sha256(self._salt + bucket.key.encode()).hexdigest()
        return self._folder / f"{name}.template"

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill `bucket`, or leave it empty; Jinja itself checks its version and the source's."""
        try:
            data = self._path(bucket).read_bytes()
        except OSError:
            return
        body = data[_DIGEST_BYTES:]
        if hashlib.sha256(body).digest() == data[:_DIGEST_BYTES]:
            bucket.bytecode_from_string(body)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep `bucket` where the folder can be written; a report does without otherwise."""
        body = bucket.bytecode_to_string()
        path = self._path(bucket)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_bytes(hashlib.sha256(body).digest() + body)
            temporary.replace(path)
