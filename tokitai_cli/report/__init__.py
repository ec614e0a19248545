"""Finished evidence as files for people and programs."""

from tokitai_cli.report.format import Look
from tokitai_cli.report.render import (
    EVIDENCE_FORMATS,
    INDEX_FILES,
    INDEX_FORMATS,
    PLAIN,
    check_format,
    check_look,
    file_name,
    render,
    render_index,
    statement,
)

__all__ = [
    "EVIDENCE_FORMATS",
    "INDEX_FILES",
    "INDEX_FORMATS",
    "PLAIN",
    "Look",
    "check_format",
    "check_look",
    "file_name",
    "render",
    "render_index",
    "statement",
]
