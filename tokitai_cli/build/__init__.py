"""Harness text, compiler and cache: from a request and a recipe to an executable."""

from tokitai_cli.build import cache
from tokitai_cli.build._build import Artifact, build, failed_record
from tokitai_cli.build._compile import COMPILE_SECONDS
from tokitai_cli.build._harness import harness_context, harness_text
from tokitai_cli.build._request import (
    check_kernel_name,
    defines_of,
    harness_request,
    sharing,
    source_path,
)

__all__ = [
    "COMPILE_SECONDS",
    "Artifact",
    "build",
    "cache",
    "check_kernel_name",
    "defines_of",
    "failed_record",
    "harness_context",
    "harness_request",
    "harness_text",
    "sharing",
    "source_path",
]
