"""Harness text, compiler and cache: from a request and a recipe to an executable."""

from tokitai_cli.build import cache
from tokitai_cli.build.artifact import Artifact, build, failed_record
from tokitai_cli.build.compiler import COMPILE_SECONDS
from tokitai_cli.build.harness_request import (
    defines_of,
    flags_of,
    harness_request,
    sharing,
    source_path,
)
from tokitai_cli.build.harness_text import harness_context, harness_text
from tokitai_cli.build.shared_library import SharedLibrary, shared_library

__all__ = [
    "COMPILE_SECONDS",
    "Artifact",
    "SharedLibrary",
    "build",
    "cache",
    "defines_of",
    "failed_record",
    "flags_of",
    "harness_context",
    "harness_request",
    "harness_text",
    "shared_library",
    "sharing",
    "source_path",
]
