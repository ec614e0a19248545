"""Whether devices, builds and repetitions of evidence can be those of the devices that it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tokitai_cli.core.model.audit_answer import Remark
from tokitai_cli.core.model.device import TRAITS, DeviceClass
from tokitai_cli.core.model.evidence import BuildRecord, CaseRecord, DeviceRecord, Evidence
from tokitai_cli.evidence import queries


class _Marks(msgspec.Struct, frozen=True):
    """What tells a build for a class of devices, as regular expressions."""

    #: Of a word that the command has.
    word: str
    #: Of what the compiler says of its version.
    compiler: str
    #: Of the architecture.
    arch: str


# In order: what the first of these fits is no build for those behind it. The cpu device takes any host
# compiler, so that a build for it is told by the words of others alone.
_MARKS: Mapping[DeviceClass, _Marks] = {
    DeviceClass.GFX_ISA_ON_CPU: _Marks(
        r"-DTOKITAI_(?:DEVICE|RUNS)_GFX=1", r"", r"gfx\w+(?:[:\w+-]*)"
    ),
    DeviceClass.HOST_SIMT: _Marks(r"-DTOKITAI_DEVICE_CPU=1", r"", r"(?!gfx|sm_).+"),
    DeviceClass.NVIDIA_GPU: _Marks(
        r"arch=compute_\w+,code=sm_\w+", r"(?i)nvcc|cuda compiler", r"sm_\w+"
    ),
    DeviceClass.AMD_GPU: _Marks(
        r"--offload-arch=gfx.+|--cuda-host-only", r"(?i)hip version|clang", r"gfx\w+(?:[:\w+-]*)"
    ),
}


def remarks(evidence: Evidence, *, same: bool) -> Iterator[Remark]:
    """What no run on the named devices writes. same: this very tool has written the file."""
    for name, device in evidence.devices.items():
        yield from _told(_device(name, device))
    for build in evidence.builds.values():
        record = evidence.devices.get(build.device)
        yield from _told(_build(build, record))
    for case in queries.cases(evidence):
        ran = evidence.builds.get(case.build)
        in_front = ran is not None and ran.failed and not ran.device  # of the compiler
        if ran is not None and ran.device != case.device and not in_front:
            yield Remark(f"{case.key}: its build is for {ran.device}", fault=True)
        yield from (Remark(f"{case.key}: {text}", fault=same) for text in _schedules(case))


def _told(texts: Iterable[str]) -> Iterator[Remark]:
    return (Remark(text, fault=True) for text in texts)


def _device(name: str, device: DeviceRecord) -> Iterator[str]:
    traits = TRAITS.get(name)
    if device.name != name:
        yield f"the device {name} has the name {device.name}"
    elif traits is None:
        yield f"there is no device {name}"
    elif device.device_class != traits.device_class:
        yield f"the device {name} is of the class {device.device_class}, and not {traits.device_class}"


def _build(build: BuildRecord, device: DeviceRecord | None) -> Iterator[str]:
    """Contradictions between a build and the class of the device that it is for."""
    if build.failed and not build.device:  # it failed in front of the compiler
        return
    if device is None:
        yield f"a build is for the device {build.device}, which is not in it"
        return
    if build.failed or device.device_class not in set(DeviceClass):
        return
    lacking = {"command": build.command, "header": build.headers, "harness": build.harness_sha256}
    for what in (name for name, value in lacking.items() if not value):
        yield f"a build for {build.device} succeeded, and has no {what}"
    if build.arch != device.arch:
        yield f"a build for {build.device} is for {build.arch!r}, and the device is {device.arch!r}"
    stated = DeviceClass(device.device_class)
    made_for = _class_of(build.command)
    if made_for is not stated and (made_for is not None or stated is not DeviceClass.HOST_SIMT):
        what = "an unknown device" if made_for is None else f"a device of class {made_for}"
        yield f"a build for {build.device} ({stated}) has the command of one for {what}"
        return
    marks = _MARKS[stated]
    version = "" if build.compiler is None else build.compiler.version
    if not re.search(marks.compiler, version):
        line = version.strip().partition("\n")[0]
        yield f"a build for {build.device} ({stated}) has a compiler that does not build for it: {line}"
    if not re.fullmatch(marks.arch, build.arch):
        yield f"a build for {build.device} ({stated}) has the architecture {build.arch!r}"


def _class_of(command: Iterable[str]) -> DeviceClass | None:
    words = list(command)
    for kind, marks in _MARKS.items():
        if any(re.fullmatch(marks.word, word) for word in words):
            return kind
    return None


def _schedules(case: CaseRecord) -> Iterator[str]:
    traits = TRAITS.get(case.device)
    if traits is None or traits.schedules or case.repeats is None:
        return
    if case.repeats.schedules:
        yield f"its repetitions ran in schedules that do not exist on {case.device}"
