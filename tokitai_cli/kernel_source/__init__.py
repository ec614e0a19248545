"""Kernels of real programs: what a source declares, what its kernels reach, and the rest left out."""

from tokitai_cli.kernel_source.files import SYSTEM, has_host_code, included
from tokitai_cli.kernel_source.headers import Headers
from tokitai_cli.kernel_source.host_types import template_argument
from tokitai_cli.kernel_source.launches import HostLaunch, constants_of, launches_of
from tokitai_cli.kernel_source.layout import bytes_of, fields_of
from tokitai_cli.kernel_source.pieces import syntax_of
from tokitai_cli.kernel_source.signatures import (
    Kernel,
    Parameter,
    instantiated,
    kernels_of,
    may_declare,
    parameter_of,
    types_of,
    unlisted,
)
from tokitai_cli.kernel_source.take import VERSION, Program, Taken, needed, program, take
from tokitai_cli.kernel_source.text import split
from tokitai_cli.kernel_source.types import ELEMENTS, ENUM, lanes
from tokitai_cli.kernel_source.uses import role_of, variable_role
from tokitai_cli.kernel_source.variables import Variable, reached_text, variables_of

__all__ = [
    "ELEMENTS",
    "ENUM",
    "SYSTEM",
    "VERSION",
    "Headers",
    "HostLaunch",
    "Kernel",
    "Parameter",
    "Program",
    "Taken",
    "Variable",
    "bytes_of",
    "constants_of",
    "fields_of",
    "has_host_code",
    "included",
    "instantiated",
    "kernels_of",
    "lanes",
    "launches_of",
    "may_declare",
    "needed",
    "parameter_of",
    "program",
    "reached_text",
    "role_of",
    "split",
    "syntax_of",
    "take",
    "template_argument",
    "types_of",
    "unlisted",
    "variable_role",
    "variables_of",
]
