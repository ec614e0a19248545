"""Profiles to arrays: what the kernels of a case are given to work on."""

from tokitai_cli.inputs.arrays import Drawn, draw

__all__ = ["Drawn", "draw"]
