"""Spec files: strict reading of YAML into `LoadedSpec`, and the JSON Schema for editors."""

from tokitai_cli.spec.library import builtin, find, load
from tokitai_cli.spec.schema import spec_schema

__all__ = ["builtin", "find", "load", "spec_schema"]
