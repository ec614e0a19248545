"""Finished evidence as files for people and programs."""

from tokitai_cli.report.render import (
    EVIDENCE_FORMATS,
    INDEX_FILES,
    INDEX_FORMATS,
    check_format,
    file_name,
    render,
    render_index,
)

__all__ = [
    "EVIDENCE_FORMATS",
    "INDEX_FILES",
    "INDEX_FORMATS",
    "check_format",
    "file_name",
    "render",
    "render_index",
]
