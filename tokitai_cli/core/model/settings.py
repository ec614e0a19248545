"""How cases run: what a run, a batch, its workers and their files say alike of it."""

from __future__ import annotations

import msgspec

from tokitai_cli.core.model.device import DeviceOptions

# Elements that are never written only show under two complementary fills.
MIN_REPEAT = 2


class Settings(DeviceOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every case of a run or a batch runs with; its devices take it as their options."""

    #: Launch sequences whose results are compared.
    repeat: int = MIN_REPEAT
    #: Those before them.
    warmup: int = 0
    #: Seconds of a case's kernels, and of a user's oracle.
    timeout: float = 60.0
    #: Each case runs under the device's sanitizer too.
    sanitize: bool = False
    #: Findings that are warnings refute as well.
    strict: bool = False

    @property
    def anywhere(self) -> Settings:
        """The part that a result depends on: which GPU and how many threads are a machine's own."""
        return msgspec.structs.replace(self, gpu=0, threads=0)
