"""`python -m bench.wheels WHEEL... [--arch A,B]`: kernels of public wheels that can be executed.

Each library of a wheel is read, nothing of it runs. Writes reports/generated/wheels.md: for each wheel
and processor the kernels, how many `isa` says can be executed, and what stops the others.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tokitai_cli.core.errors import CodeError
from tokitai_cli.devices.amdgpu.binary import bundles
from tokitai_cli.devices.amdgpu.lacks import Lacks

DOCUMENT = Path(__file__).resolve().parent.parent / "reports" / "generated" / "wheels.md"
ARCHES = ("gfx1101", "gfx90a", "gfx942")
_TOLD = 6  # reasons in a row
HEAD = """\
# Kernels of public wheels that the gfx device can execute

Written by `python -m bench.wheels`, for wheels of PyPI that hold code for AMD GPUs. A kernel can be
executed where `tokitai isa` says so: every instruction that its waves may come to, its float modes and
hidden arguments are modelled. Behind the reasons stands how many kernels have it; one kernel may have
several. No kernel was run.

| wheel | processor | kernels | executed | share | what stops the others |
|---|---|--:|--:|--:|---|
"""


def libraries(wheel: Path, folder: Path) -> Iterator[Path]:
    """The files of a wheel that may hold code objects, unpacked one by one."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".so" in name or name.endswith((".hsaco", ".co")):
                yield Path(archive.extract(name, folder))


def counted(wheel: Path, arches: list[str]) -> Iterator[tuple[str, int, Counter[str]]]:
    """Of each processor that the wheel has code for: kernels, and how many each reason stops."""
    totals: Counter[str] = Counter()
    stopped: dict[str, Counter[str]] = {arch: Counter() for arch in arches}
    with tempfile.TemporaryDirectory() as folder:
        for file, arch in itertools.product(libraries(wheel, Path(folder)), arches):
            try:
                held = bundles.read(file, arch)
            except CodeError:  # none for that processor
                continue
            for code in held:
                looked = Lacks(code)
                for kernel in code.kernels:
                    totals[arch] += 1
                    lacks = looked.of(kernel)
                    stopped[arch].update(lacks)
                    stopped[arch][""] += bool(lacks)
    for arch in arches:
        if totals[arch]:
            yield arch, totals[arch], stopped[arch]


def table(wheels: list[Path], arches: list[str]) -> str:
    """The whole document."""
    lines = [HEAD]
    for wheel in sorted(wheels):
        name, version, *_ = wheel.name.split("-")
        for arch, kernels, stopped in counted(wheel, arches):
            runs = kernels - stopped.pop("", 0)
            reasons = [f"{reason} ({count})" for reason, count in stopped.most_common(_TOLD)]
            more = [f"{len(stopped) - _TOLD} more"] if len(stopped) > _TOLD else []
            cells = (
                *(f"{name.replace('_', '-')} {version}", arch, f"{kernels:,}", f"{runs:,}"),
                *(f"{100 * runs / kernels:.1f} %", ", ".join(reasons + more)),
            )
            lines.append(f"| {' | '.join(cells)} |\n")
    return "".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--arch", default=",".join(ARCHES))
    given = parser.parse_args()
    DOCUMENT.write_text(table(given.wheels, given.arch.split(",")), encoding="utf-8")
