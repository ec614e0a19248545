"""What the probes of GPUs share: what is lacking, in words, and architectures that are none."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from tokitai_cli.core.model.device import TRAITS, DeviceOptions, Fact, Probe


class Vendor(msgspec.Struct, frozen=True):
    """Words of a maker of GPUs, and the form of its architectures' names.

    mend: what a machine needs, without a full stop.
    """

    device: str
    maker: str
    runtime: str
    arch: re.Pattern[str]
    hint: str

    def wrong_arch(self, options: DeviceOptions) -> str:
        """Say that --arch is no architecture; empty for a good one, "native" and none."""
        if not options.arch or options.arch == "native" or self.arch.fullmatch(options.arch):
            return ""
        return f"--arch {options.arch}: not an architecture of {self.maker} GPUs"

    def no_gpu(self, options: DeviceOptions, count: int, none: str) -> str:
        """Say that the GPU that was asked for is not among `count`; `none` where there is none."""
        if options.gpu < count:
            return ""
        return f"no GPU {options.gpu}: there are {count}" if count else none

    def probe(
        self,
        arch: str,
        facts: Iterable[Fact],
        lacks: Iterable[str],
        *,
        buildable: bool,
        alone: bool,
        only: str = "",
    ) -> Probe:
        """Probe of a machine that has `facts` and lacks what is not empty of `lacks`.

        alone: there is no GPU, so that building is all that may work; `only` says for what.
        """
        told = ", ".join(filter(None, lacks))
        builds = f"; --build-only compiles here{only}" if buildable and alone else ""
        missing = f"{self.runtime} is unavailable; {told}; "
        missing += f"{self.maker} device evidence remains inadmissible"
        return Probe(
            self.device,
            TRAITS[self.device].device_class,
            available=not told,
            buildable=buildable,
            arch=arch,
            facts=tuple(facts),
            missing=missing if told else "",
            hint=f"{self.hint}{builds}" if told else "",
        )
