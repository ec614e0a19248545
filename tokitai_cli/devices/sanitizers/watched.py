"""A device whose children run under another program, which watches them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from tokitai_cli.core.linked_folders import BUILT
from tokitai_cli.core.model.device import Device, DeviceOptions, Probe, Recipe, Sanitizer, Traits


class Watched:
    """`device` behind `prefix`, with {log} for a file of each child in `folder`.

    options: further ones of the child.
    """

    def __init__(
        self, device: Device, prefix: tuple[str, ...], options: tuple[str, ...], folder: Path
    ) -> None:
        self.name: str = device.name
        self.traits: Traits = device.traits
        self.non_claims: tuple[str, ...] = device.non_claims
        self._device = device
        self._prefix = prefix
        self._options = options
        self._folder = folder
        self._children = 0

    def probe(self, options: DeviceOptions) -> Probe:
        """Probe of the device itself."""
        return self._device.probe(options)

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Recipe of the device itself, with line numbers: what is watched is what `verify` runs.

        The machine code is the same. Builds that nothing watches are without: nvcc's line table has the
        times at which files were changed.
        """
        recipe = self._device.recipe(options, defines, flags)
        compiler, *words = recipe.command
        return msgspec.structs.replace(recipe, command=(compiler, "-lineinfo", *words))

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Argv of the child, behind the program's."""
        self._children += 1
        log = self._folder / f"{self._children:06}.log"
        log.touch()  # a program that writes none has not watched
        log.with_suffix(BUILT).symlink_to(artifact.parent)
        prefix = (word.replace("{log}", str(log)) for word in self._prefix)
        return (*prefix, *self._device.launch_command(artifact, options), *self._options)

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the device's child."""
        return self._device.launch_environment(options)

    def sanitizers(self) -> tuple[Sanitizer, ...]:
        """Those of the device itself."""
        return self._device.sanitizers()
