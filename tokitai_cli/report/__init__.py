"""Finished evidence as files for people and programs."""

from tokitai_cli.report.format import ReportOptions
from tokitai_cli.report.kernel_places import kernel_place
from tokitai_cli.report.render import (
    EVIDENCE_FORMATS,
    INDEX_FILES,
    INDEX_FORMATS,
    JOINED_FORMATS,
    PLAIN,
    check_format,
    check_report_options,
    file_name,
    render,
    render_index,
    statement,
)

__all__ = [
    "EVIDENCE_FORMATS",
    "INDEX_FILES",
    "INDEX_FORMATS",
    "JOINED_FORMATS",
    "PLAIN",
    "ReportOptions",
    "check_format",
    "check_report_options",
    "file_name",
    "kernel_place",
    "render",
    "render_index",
    "statement",
]
