"""Profiles to arrays: what the kernels of a case are given to work on."""

from tokitai_cli.spec.inputs.compiled_draws import check_native
from tokitai_cli.spec.inputs.drawing import Drawn, draw

__all__ = ["Drawn", "check_native", "draw"]
