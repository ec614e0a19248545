"""Kernels of real programs: what a source declares, what its kernels reach, and the rest left out."""

from tokitai_cli.kernel_source.files import SYSTEM, has_host_code
from tokitai_cli.kernel_source.signatures import (
    Kernel,
    Parameter,
    instantiated,
    kernels_of,
    may_declare,
    template_arguments,
)
from tokitai_cli.kernel_source.take import VERSION, Program, Taken, program, take

__all__ = [
    "SYSTEM",
    "VERSION",
    "Kernel",
    "Parameter",
    "Program",
    "Taken",
    "has_host_code",
    "instantiated",
    "kernels_of",
    "may_declare",
    "program",
    "take",
    "template_arguments",
]
