"""The harness's GPU side as a device that needs no GPU: HIP's runtime is stood in for."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tokitai_cli import devices
from tokitai_cli.core import resources
from tokitai_cli.core.model.device import (
    TRAITS,
    DeviceOptions,
    Probe,
    Recipe,
    Sanitizer,
    Traits,
    Unit,
)
from tokitai_cli.devices.module_unit import of_amd
from tokitai_cli.devices.sanitizers import compute_sanitizer

HEADERS = Path(__file__).parent / "stand_in"
BUILT_FOR = "gfx1101"


class StandIn:
    """A device whose runtime is `stand_in/hip/hip_runtime.h`; `environment` is its child's."""

    non_claims: tuple[str, ...] = ("not a GPU",)

    def __init__(self, environment: Mapping[str, str] | None = None, name: str = "rocm") -> None:
        self.name: str = name
        self.traits: Traits = TRAITS[name]
        self._environment = dict(environment or {})

    def probe(self, options: DeviceOptions) -> Probe:
        """Always there."""
        del options
        return Probe(
            self.name, self.traits.device_class, available=True, buildable=True, arch=BUILT_FOR
        )

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Recipe of the cpu device, with the stand-in before its headers."""
        recipe = devices.get("cpu").recipe(options, defines, flags)
        kernels = resources.kernels_dir()
        dropped = {"-DTOKITAI_DEVICE_CPU=1", f"-I{kernels / 'host'}"}
        dropped |= {"-fsanitize=alignment", "-fno-sanitize-recover=alignment"}
        more = [f'-DTOKITAI_BUILT_FOR="{BUILT_FOR}"', f"-I{HEADERS}", f"-I{kernels / 'host'}"]
        command, server = (
            (words[0], *more, *(word for word in words[1:] if word not in dropped))
            for words in (recipe.command, recipe.server)
        )
        made = msgspec.structs.replace(
            recipe, device=self.name, arch=BUILT_FOR, command=command, server=server
        )
        unit = Unit(functools.partial(of_amd, arch=BUILT_FOR), "1")
        loading = msgspec.structs.replace(made, assembly=(), inspect_object=None, unit=unit)
        return msgspec.structs.replace(made, machine_code=loading)

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Argv as the real devices have it."""
        return (str(artifact), f"--gpu={options.gpu}")

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment with what the runtime is to do wrong."""
        return {**devices.get("cpu").launch_environment(options), **self._environment}

    def sanitizers(self) -> tuple[Sanitizer, ...]:
        """Those of the real device."""
        return compute_sanitizer.sanitizers()
