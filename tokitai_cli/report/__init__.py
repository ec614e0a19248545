"""Finished evidence as text for people and programs."""

from tokitai_cli.report.render import FORMATS, INDEX_FORMATS, junit_pieces, render, render_index

__all__ = ["FORMATS", "INDEX_FORMATS", "junit_pieces", "render", "render_index"]
