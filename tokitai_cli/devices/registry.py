"""Devices by name, and the choice among them."""

from __future__ import annotations

import msgspec

from tokitai_cli.core.errors import UsageError, near
from tokitai_cli.core.model.device import AUTO, Device, DeviceOptions, Fact, Probe, Sanitizer
from tokitai_cli.devices.cpu import CpuDevice
from tokitai_cli.devices.cuda import CudaDevice
from tokitai_cli.devices.gfx import GfxDevice
from tokitai_cli.devices.rocm import RocmDevice

_DEVICES: dict[str, Device] = {
    device.name: device for device in (RocmDevice(), CudaDevice(), GfxDevice(), CpuDevice())
}
CHOSEN_BY = "chosen-by"


def names() -> tuple[str, ...]:
    """Names of all devices."""
    return tuple(_DEVICES)


def get(name: str) -> Device:
    """Device by name; raises UsageError with the nearest names."""
    try:
        return _DEVICES[name]
    except KeyError:
        raise UsageError(
            f"unknown device: {name!r}", hint=near(name, (*_DEVICES, "auto", "all"))
        ) from None


def watch_beside() -> tuple[Device, Sanitizer]:
    """The device that watches kernels beside a run on any device, and its tool that does."""
    from tokitai_cli.devices.sanitizers import cpu_watch

    device = CpuDevice()
    return device, cpu_watch.beside(device)


def choose(choice: str, options: DeviceOptions) -> list[tuple[Device, Probe]]:
    """Devices of `--device`, each probed once.

    "auto": the first available of AUTO; its probe has the fact "chosen-by", which says
    what was passed over. "all": every device, so that a report can name those that are not there;
    only the available ones can run. A name: that device, available or not. Raises UsageError.
    """
    if choice == "all":
        return [(device, device.probe(options)) for device in _DEVICES.values()]
    if choice != "auto":
        device = get(choice)
        return [(device, device.probe(options))]
    passed: list[str] = []
    for name in AUTO:
        device = _DEVICES[name]
        probe = device.probe(options)
        if probe.available or name == AUTO[-1]:
            break
        passed.append(name)
    words = f"auto took {device.name}" + (f"; not available: {', '.join(passed)}" if passed else "")
    fact = Fact(CHOSEN_BY, words, "--device auto")
    return [(device, msgspec.structs.replace(probe, facts=(*probe.facts, fact)))]
