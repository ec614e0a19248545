"""The gfx device: AMD machine code executed on the CPU. This version only looks for a compiler."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from tokitai_cli.devices.environment import child_environment, dropped_facts
from tokitai_cli.devices.programs import first_program
from tokitai_cli.errors import InadmissibleError
from tokitai_cli.model.device import TRAITS, DeviceOptions, Fact, Probe, Recipe, Sanitizer, Traits

_DEFAULT_ARCH = "gfx1101"
NOT_SUPPORTED = "executing gfx machine code is not supported by this version"


class GfxDevice:
    """gfx machine code on the CPU."""

    name: str = "gfx"
    traits: Traits = TRAITS["gfx"]
    non_claims: tuple[str, ...] = (
        "not executed on a GPU",
        "timing, caches, memory model and hazards are not modelled",
        "transcendental instructions are modelled within 1 ulp",
    )

    def probe(self, options: DeviceOptions) -> Probe:
        """Look for a compiler that may have the amdgcn target; it is not started."""
        facts = list(dropped_facts())
        clang = first_program([("clang", "PATH")])
        if importlib.util.find_spec("ziglang") is not None:
            facts.append(Fact("compiler", "zig", "pip's ziglang"))
        elif clang is not None:
            facts.append(Fact("compiler", str(clang[0]), clang[1]))
        return Probe(
            self.name,
            self.traits.device_class,
            available=False,
            buildable=False,
            arch=options.arch or _DEFAULT_ARCH,
            facts=tuple(facts),
            missing=f"the gfx device is unavailable; {NOT_SUPPORTED}",
            mend="use --device cpu",
        )

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Raise InadmissibleError: nothing is built for a device that cannot run it."""
        del defines, flags
        raise InadmissibleError(self.probe(options).missing)

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Raise InadmissibleError."""
        del artifact
        raise InadmissibleError(self.probe(options).missing)

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the child."""
        del options
        return child_environment()

    def sanitizers(self) -> tuple[Sanitizer, ...]:
        """None: nothing watches its kernels."""
        return ()
