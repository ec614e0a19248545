"""Finished evidence as text for people and programs."""

from tokitai_cli.report.render import FORMATS, render

__all__ = ["FORMATS", "render"]
