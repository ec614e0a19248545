"""The machine code that the gfx device makes of an op's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tokitai_cli import build, devices
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.devices.amdgpu.gfx_compiler import CODE_OBJECT
from tokitai_cli.spec import plan


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
            raise SpecError(f"the variant {name} has no case", hint="see `tokitai show`")
        request = build.harness_request(case)
        path = request.source
        if not is_machine_code(path):
            recipe = device.recipe(options, dict(request.defines), build.flags_of(case))
            path = build.build(request, recipe, models=loaded.models).path.with_name(CODE_OBJECT)
        if path not in known:
            known.add(path)
            yield path
