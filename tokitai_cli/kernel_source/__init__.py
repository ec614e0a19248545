"""Kernels of real programs: what a source declares, what its kernels reach, and the rest left out."""

from tokitai_cli.kernel_source.files import has_host_code
from tokitai_cli.kernel_source.take import VERSION, Taken, take

__all__ = ["VERSION", "Taken", "has_host_code", "take"]
