"""The machine code that the gfx device makes of an op's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tokitai_cli import build, devices, plan
from tokitai_cli.devices.gfx_compiler import CODE_OBJECT
from tokitai_cli.errors import SpecError
from tokitai_cli.isa.kind import is_machine_code
from tokitai_cli.model.case import LoadedSpec
from tokitai_cli.model.device import DeviceOptions


def built(loaded: LoadedSpec, arch: str) -> Iterator[Path]:
    """The code object of each harness of the op, built or out of the cache.

    A source that is machine code stands for itself. At the default shape, which `defines` may hang on.
    Raises SpecError for an op without a case, and what the build raises, for machine code that cannot
    be executed too.
    """
    device = devices.get("gfx")
    options = DeviceOptions(arch=arch)
    known: set[Path] = set()
    for name in loaded.spec.variants:
        case = plan.example(loaded, name)
        if case is None:
            raise SpecError(f"the variant {name} has no case", mend="see `tokitai show`")
        request = build.harness_request(case)
        path = request.source
        if not is_machine_code(path):
            recipe = device.recipe(options, dict(request.defines), build.flags_of(case))
            path = build.build(request, recipe).path.with_name(CODE_OBJECT)
        if path not in known:
            known.add(path)
            yield path
