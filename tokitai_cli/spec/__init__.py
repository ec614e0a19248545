"""Spec files: strict reading of YAML into `LoadedSpec`, and the JSON Schema for editors."""

from tokitai_cli.spec.reader.document import dotted
from tokitai_cli.spec.reader.library import builtin, file_bytes, find, is_spec, load, placed, recall
from tokitai_cli.spec.reader.spec_schema import spec_schema

__all__ = [
    "builtin",
    "dotted",
    "file_bytes",
    "find",
    "is_spec",
    "load",
    "placed",
    "recall",
    "spec_schema",
]
