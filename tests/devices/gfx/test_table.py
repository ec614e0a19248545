"""Which kernels of this repository run on the gfx device, and how that compares with the cpu device.

The tables are reports/generated/gfx.md and gfx942.md, written with TOKITAI_UPDATE_GOLDEN=1; otherwise
they are compared.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import fault_specs
from tests.commands import test_wrong_kernels
from tests.devices.sanitizers import specs as watched
from tests.runs import KERNELS, run
from tokitai_cli import build, devices, spec
from tokitai_cli.core.errors import BuildError
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices.amdgpu import gfx_compiler
from tokitai_cli.devices.amdgpu.binary.objects import read_code_object
from tokitai_cli.devices.amdgpu.lacks import Lacks

ROOT = Path(__file__).parents[3]
# The page of an architecture, and the lanes of a warp of the cpu device beside it.
PAGES = {"gfx1101": ("gfx", 32), "gfx942": ("gfx942", 64)}
UPDATE = os.environ.get("TOKITAI_UPDATE_GOLDEN") == "1"
LEAST_SHARE = 0.9
NOT_HERE = (Verdict.NOT_RUN, Verdict.BUILD_FAILED)
HEAD = """\
# Kernels of this repository on the gfx device: {arch}

Written by `TOKITAI_UPDATE_GOLDEN=1 python -m pytest tests/devices/gfx/test_table.py`, with clang 19 for
{arch}; the test compares. A kernel runs where all instructions that its waves come to are executed;
a source of templates alone has no kernels of its own. Verdicts are those of the profile `normal` (of the
first, where a spec has none of that name) at the default shape, beside the cpu device's{lanes}. More is
refuted on gfx: reads outside of buffers, reads of what nothing has written and races, which the cpu
device leaves to `tokitai sanitize`.
"""


def _there(path: Path, folder: Path) -> Path:
    del folder
    return path


def of_specs() -> dict[str, Callable[[Path], Path]]:
    """Specs by what they are called in the table: shipped ones, examples, and those of wrong kernels."""
    examples = [
        *sorted(
            path
            for path in (ROOT / "docs" / "examples").rglob("*.yaml")
            # Without files that others built, and the pages of the site.
            if not {"machine_code", "gallery"} & set(path.parts)
        ),
        *sorted((KERNELS / "own").rglob("spec.yaml")),
    ]
    paths = [*spec.builtin(), *((str(path.relative_to(ROOT)), path) for path in examples)]
    found: dict[str, Callable[[Path], Path]] = {
        name: functools.partial(_there, path) for name, path in paths
    }
    for op in ("gemm-bw", "embedding", "softmax", "layernorm", "blocks"):
        found[f"faults of {op}"] = functools.partial(fault_specs.write_spec, op)
    found["wrong kernels"] = test_wrong_kernels.spec_in
    found["faults that sanitizers find"] = lambda folder: watched.write_spec(
        folder, list(watched.kernels())
    )
    return found


def of_sources() -> list[Path]:
    """Sources without specs of their own; kernels that are no templates are in their code objects."""
    return [*sorted((KERNELS / "programs").iterdir()), *sorted((KERNELS / "examples").iterdir())]


def kernels_in(evidence: Evidence) -> tuple[set[str], set[str]]:
    """Kernels of a run's builds that were translated, and those that were not."""
    mark = ": machine code sha256"
    there = {
        fact.name.removesuffix(mark)
        for one in evidence.builds.values()
        for fact in one.code_object
        if fact.name.endswith(mark)
    }
    lacking = {
        launch.kernel
        for case in evidence.cases
        if case.verdict in NOT_HERE
        for launch in case.launches
    }
    return there, lacking


def spec_row(name: str, path: Path, folder: Path, arch: str) -> tuple[str, int, int]:
    """A line of the table, kernels that run and all kernels of the spec."""
    loaded = spec.load(path)
    profiles = list(loaded.spec.profiles)
    chosen = ["normal"] if "normal" in profiles else profiles[:1]
    both = [
        run(path, folder / "gfx", device="gfx", profile=chosen, arch=arch),
        run(path, folder / "cpu", device="cpu", profile=chosen, warp_size=PAGES[arch][1]),
    ]
    there, lacking = kernels_in(both[0])
    counts = [Counter(case.verdict for case in one.cases) for one in both]
    told = [", ".join(f"{count[one]} {one}" for one in sorted(count)) for count in counts]
    why = sorted(
        {
            case.reason.partition(" (")[0].rpartition("': ")[2]
            for case in both[0].cases
            if case.verdict in NOT_HERE
        }
    )
    every = len(there | lacking)
    row = f"| {name} | {len(there)} of {every} | {told[0]} | {told[1]} | {'; '.join(why)} |"
    return row, len(there), every


def source_row(path: Path, arch: str) -> tuple[str, int, int]:
    """A line of the table for a source: its kernels by what of them is not executed."""
    recipe = devices.get("gfx").recipe(DeviceOptions(arch=arch), {}, ())
    name = str(path.relative_to(ROOT))
    try:
        made = build.build(HarnessRequest(path, ()), recipe)
    except BuildError as error:
        return f"| {name} | does not compile |  |  | {str(error).partition(' (')[0]} |", 0, 1
    code = read_code_object((made.path.parent / gfx_compiler.CODE_OBJECT).read_bytes())
    lacks, looked = {}, Lacks(code)
    for kernel in code.kernels:
        lacks[kernel.name] = looked.of(kernel)
    good = sum(not one for one in lacks.values())
    why = "; ".join(sorted({word for one in lacks.values() for word in one}))
    return f"| {name} | {good} of {len(lacks)} |  |  | {why} |", good, len(lacks)


def table(folder: Path, arch: str) -> Iterator[str]:
    """The page's text."""
    good = every = 0
    lanes = PAGES[arch][1]
    yield HEAD.format(arch=arch, lanes=f" with warps of {lanes}" if lanes != 32 else "")
    yield "| spec or source | kernels that run | verdicts on gfx | on cpu | refused for |"
    yield "|---|---|---|---|---|"
    for name, made in of_specs().items():
        place = folder / name.replace("/", "-").replace(" ", "-")
        place.mkdir()
        row, some, all_of_it = spec_row(name, made(place), place, arch)
        good, every = good + some, every + all_of_it
        yield row
    for path in of_sources():
        row, some, all_of_it = source_row(path, arch)
        good, every = good + some, every + all_of_it
        yield row
    share = good / every
    assert share >= LEAST_SHARE, f"{good} of {every} kernels"
    yield f"\n{good} of {every} kernels run: {100 * share:.1f} %.\n"


@pytest.mark.slow
@pytest.mark.parametrize("arch", PAGES)
def test_the_table_of_kernels(arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(gfx_compiler.CHOSEN, raising=False)
    chain = gfx_compiler.toolchain()
    if chain is None:
        pytest.skip("no compiler for AMD GPUs is installed")
    text = "\n".join(table(tmp_path, arch))
    if chain.source == gfx_compiler.ZIG:
        return  # the page is clang's; of zig's code objects the share of kernels that run is held
    document = ROOT / "reports" / "generated" / f"{PAGES[arch][0]}.md"
    if UPDATE:
        document.write_text(text, encoding="utf-8")
    assert document.read_text(encoding="utf-8") == text
