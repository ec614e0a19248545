"""The only composer of the stages. Names are loaded when they are first asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokitai_cli.evidence import to_json as evidence_json
    from tokitai_cli.pipeline.composer import RunOutcome, verify
    from tokitai_cli.pipeline.every import verify_all
    from tokitai_cli.pipeline.files import render_file, write_report
    from tokitai_cli.pipeline.options import RunOptions, run_options
    from tokitai_cli.pipeline.specs import load_op
    from tokitai_cli.pipeline.survey import (
        builtin_specs,
        cache_contents,
        cache_json,
        clear_cache,
        cleared_json,
        diagnose,
        diagnosis_json,
        listing_json,
        schema_text,
    )
    from tokitai_cli.pipeline.watched import sanitize

__all__ = [
    "RunOptions",
    "RunOutcome",
    "builtin_specs",
    "cache_contents",
    "cache_json",
    "clear_cache",
    "cleared_json",
    "diagnose",
    "diagnosis_json",
    "evidence_json",
    "listing_json",
    "load_op",
    "render_file",
    "run_options",
    "sanitize",
    "schema_text",
    "verify",
    "verify_all",
    "write_report",
]

_HOMES = {
    "files": ("render_file", "write_report"),
    "options": ("RunOptions", "run_options"),
    "specs": ("load_op",),
    "composer": ("RunOutcome", "verify"),
    "every": ("verify_all",),
    "watched": ("sanitize",),
}
_HOME_OF = {
    name: f"tokitai_cli.pipeline.{home}" for home, names in _HOMES.items() for name in names
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "evidence_json":
        return importlib.import_module("tokitai_cli.evidence").to_json
    home = _HOME_OF.get(name, "tokitai_cli.pipeline.survey")
    return getattr(importlib.import_module(home), name)
