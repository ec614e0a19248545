"""What is there: ops, schemas, devices, cache. Plain data for the terminal and for JSON."""

from __future__ import annotations

import functools
import json
import shutil
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from tokitai_cli import build, devices, evidence, spec
from tokitai_cli.core import resources
from tokitai_cli.core.errors import UsageError, near
from tokitai_cli.core.model.batch_record import INDEX_SCHEMA, BatchIndex
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.device import AUTO, DeviceOptions, Fact
from tokitai_cli.core.model.diagnosis import CacheListing, Diagnosis, Lack

_HELPERS = {
    "gdb": Lack("gdb, which runs a failing case under a debugger", "apt-get install gdb"),
    "git": Lack("git, which gives the commit of a checkout", "apt-get install git"),
}


def diagnose() -> Diagnosis:
    """Look at the tool's own set-up and probe every device."""
    options = DeviceOptions()
    probes = tuple(devices.get(name).probe(options) for name in devices.names())
    tool = evidence.tool_record()
    listing = cache_contents()
    facts = (
        Fact(
            "tokitai", f"{tool.version} {tool.commit}".strip(), str(resources.kernels_dir().parent)
        ),
        Fact("python", tool.python, sys.executable),
        Fact("numpy", tool.numpy, "numpy.__version__"),
        Fact("platform", tool.platform, "uname"),
        Fact(
            "cache",
            f"{len(listing.entries)} built, {listing.nbytes / 2**20:.1f} MiB",
            listing.folder,
        ),
        *(
            Fact(
                f"{one.device_class} evidence",
                f"`tokitai verify OP --device {one.device}`: auto does not choose it",
                "available",
            )
            for one in probes
            if one.available and one.device not in AUTO
        ),
    )
    lacks = tuple(lack for program, lack in _HELPERS.items() if shutil.which(program) is None)
    return Diagnosis(probes, facts, lacks)


def builtin_specs() -> list[LoadedSpec]:
    """Read every built-in spec, by name."""
    return [spec.load(path) for _, path in spec.builtin()]


def listing_json(specs: list[LoadedSpec]) -> str:
    """Ops with variants, parameters and profiles as JSON."""
    listing = [
        {
            "op": loaded.spec.op,
            "title": loaded.spec.title,
            "params": {name: param.default for name, param in loaded.spec.params.items()},
            "variants": list(loaded.spec.variants),
            "profiles": list(loaded.spec.profiles),
            "suites": list(loaded.spec.suites),
        }
        for loaded in specs
    ]
    return json.dumps(listing, indent=1)


def diagnosis_json(diagnosis: Diagnosis) -> str:
    """Give a diagnosis as JSON."""
    return json.dumps(msgspec.to_builtins(diagnosis), indent=1)


def schema_text(what: str) -> str:
    """JSON Schema of "spec", "evidence" or "index". Raises UsageError for another word."""
    schemas: dict[str, Callable[[], dict[str, Any]]] = {
        "spec": spec.spec_schema,
        "evidence": evidence.schema,
        "index": functools.partial(evidence.schema, BatchIndex, INDEX_SCHEMA),
    }
    if what not in schemas:
        raise UsageError(f"unknown schema {what!r}", hint=near(what, schemas))
    return json.dumps(schemas[what](), indent=1)


def cache_contents() -> CacheListing:
    """List the build cache with every entry checked."""
    entries = tuple(build.cache.entries())
    return CacheListing(str(build.cache.location().folder), build.cache.size(), entries)


def cache_json() -> str:
    """List the build cache as JSON."""
    return json.dumps(msgspec.to_builtins(cache_contents()), indent=1)


def cleared_json() -> str:
    """Clear the build cache; the bytes freed as JSON."""
    return json.dumps({"freed_bytes": clear_cache()})


def clear_cache() -> int:
    """Clear the build cache; returns the bytes freed."""
    return build.cache.clear()
