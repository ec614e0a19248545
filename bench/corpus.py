"""How many HIP files of two public repositories build for the cpu device, and what stops the rest.

    python -m bench.corpus HECBENCH_GIT ROCM_EXAMPLES_GIT --work DIR [--only WORD] [--retry] [--bind N]

The folders are git directories (ORNL/HeCBench at 49175104, ROCm/rocm-examples at 7dfb7d40); their trees
are written into DIR. Each translation unit (HeCBench: what its Makefiles compile; rocm-examples: each
.hip) that holds `__global__`, in itself or in what it includes of its program, is built by the tool's
own steps: kernels taken out of host code, compiled, linked with the unit that serves them. The
compiler is told not to optimise. Results are kept in DIR/results.jsonl, so that a run can go on.

With --bind N it takes N units at random (all where there are fewer), builds each kernel that `tokitai
find` can bind by the spec that find drafts for it, and runs it at the sizes that are guessed there, as
`find --run` does: where it does not come to its end the draft is changed by how it ended.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray

from bench.corpus_units import Unit, extract, units
from tokitai_cli.build import Artifact, build
from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.model.buffers import symbols_of
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import WARP_SIZES, DeviceOptions
from tokitai_cli.core.model.harness import HarnessRequest, KernelEntry, kernel_entry
from tokitai_cli.core.model.spec import Variant
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.devices.cpu import CpuDevice
from tokitai_cli.drafts.draft import Draft
from tokitai_cli.drafts.search import drafts_of
from tokitai_cli.drafts.trial.attempt import TrialResult, loaded_draft
from tokitai_cli.drafts.trial.attempt import attempt as run_draft
from tokitai_cli.drafts.trial.settle import retry_until_it_runs
from tokitai_cli.run.child import Server

_RUN_SECONDS = 5.0
_QUOTED = re.compile(r"['\u2018`][^'\u2019]*['\u2019]")


class Bound(msgspec.Struct):
    """One kernel: its draft and entry where it has one, what stops its build, and how its run ended."""

    draft: Draft
    variant: Variant | None = None
    entry: KernelEntry | None = None
    errors: list[str] = []
    first: str = ""
    ended: str = ""


def attempt(
    unit: Unit, kernels: tuple[KernelEntry, ...] = (), symbols: tuple[tuple[str, str], ...] = ()
) -> tuple[Artifact | None, list[str]]:
    """Build a unit that serves `kernels`: the artifact, or what stops it."""
    recipe = CpuDevice().recipe(DeviceOptions(), {}, unit.flags)
    command = tuple("-O0" if word == "-O3" else word for word in recipe.command)
    recipe = msgspec.structs.replace(recipe, command=command)
    try:
        return build(HarnessRequest(unit.source, kernels, symbols), recipe), []
    except TokitaiError as error:
        return None, [*getattr(error, "first_errors", ()), str(error)]
    except Exception as error:  # noqa: BLE001 - a fault of the tool is what is looked for here
        return None, [f"{type(error).__name__}: {error}"]


def bound(unit: Unit, folder: Path) -> list[Bound]:
    """Each kernel of a unit built by its drafted spec, and run at the draft's own sizes."""
    include = tuple(Path(flag[2:]) for flag in unit.flags if flag.startswith("-I"))
    macros = (flag[2:].partition("=") for flag in unit.flags if flag.startswith("-D"))
    defines = {name: value for name, _, value in macros}
    folder.mkdir(parents=True)
    found = drafts_of(unit.source, include, folder, defines=defines)
    if isinstance(found, Unread):
        return []
    kernels = [Bound(one) for one in found[0]]
    for one in kernels:
        if not one.draft.spec:
            one.errors = ["no draft"]
            continue
        try:
            loaded = loaded_draft(one.draft, folder)
            (one.variant,) = loaded.spec.variants.values()
            (launch,) = one.variant.launches
            one.entry = kernel_entry(one.variant, launch, WARP_SIZES[0])
        except TokitaiError as error:
            one.errors = [str(error)]
    drafted = [one for one in kernels if one.variant is not None]
    with_symbols = [one for one in drafted if one.variant and symbols_of(one.variant)]
    plain = [one for one in drafted if one not in with_symbols]
    for group in (plain, *([one] for one in with_symbols)):
        if _build_and_run(unit, group, folder):
            for one in group if len(group) > 1 else ():
                _build_and_run(unit, [one], folder)
    return kernels


def _build_and_run(unit: Unit, group: list[Bound], folder: Path) -> list[str]:
    """Build kernels together and run each; what stops the build, of all of them."""
    if not group or group[0].variant is None:
        return []
    entries = tuple(dict.fromkeys(one.entry for one in group if one.entry is not None))
    held = symbols_of(group[0].variant)
    symbols = tuple((name, buffer.dtype) for name, buffer in held.items())
    more = (flag for one in group if one.variant is not None for flag in one.variant.flags)
    unit = msgspec.structs.replace(unit, flags=tuple(dict.fromkeys([*unit.flags, *more])))
    artifact, errors = attempt(unit, entries, symbols)
    for one in group:
        one.errors = errors
        if artifact is not None:
            runner = _Runner(artifact, folder)
            one.ended = retry_until_it_runs(one.draft, runner).ended.why
            one.first = runner.first
    return errors


class _Runner:
    """Runs drafts of one kernel by the artifact that serves it."""

    def __init__(self, artifact: Artifact, folder: Path) -> None:
        self._artifact, self._folder, self.first = artifact, folder, ""
        self._runs = 0

    def __call__(self, draft: Draft) -> TrialResult:
        ended = run_draft(draft, self._folder, self._serve)
        self.first = self.first if self._runs else ended.why
        self._runs += 1
        return ended

    def _serve(self, case: Case, arrays: Mapping[str, NDArray[Any]]) -> None:
        device, options = CpuDevice(), DeviceOptions(threads=1)
        command = device.launch_command(self._artifact.path, options)
        environment = device.launch_environment(options)
        with Server(command, environment, self._artifact.request) as server:
            server.run(case, arrays, repetitions=1, timeout=_RUN_SECONDS)


def bind(chosen: list[Unit], work: Path) -> None:
    """Print how many kernels of some units have a draft that builds, and how many of these run."""
    every: list[Bound] = []
    for number, unit in enumerate(chosen):
        here = bound(unit, work / "drafts" / str(number))
        for one in here:
            ended = re.sub(r"0x[0-9a-f]+, ?", "", one.ended)[:130]
            told = reason(one.errors) if one.errors else ended
            name = one.entry.expr if one.entry else one.draft.kernel.name
            if told:
                sys.stdout.write(f"      {unit.name} {name}: {told}\n")
            elif one.first:
                sys.stdout.write(f"   ok {unit.name} {name}: {one.first[:130]}\n")
        every += here
        sys.stdout.flush()
        sys.stderr.write(f"\r{number + 1}/{len(chosen)} {unit.name[:70]:70}")
    count = len(every)
    drafted = sum(one.errors != ["no draft"] for one in every)
    built = sum(not one.errors for one in every)
    plain = sum(not one.errors and not one.first for one in every)
    ran = sum(not one.errors and not one.ended for one in every)
    shares = [f"{one} ({100 * one / max(1, count):.1f} %)" for one in (built, plain, ran)]
    sys.stdout.write(
        f"{len(chosen)} units: {count} kernels, {drafted} with a draft, {shares[0]} build,"
        f" {shares[1]} run to their end at once, {shares[2]} after changes by how they ended\n"
    )


def reason(errors: list[str]) -> str:
    """The first error without place and names, so that equal ones meet."""
    text = re.sub(r"^\S+?:\d+:(?:\d+:)? *(?:fatal )?(?:error: )?", "", errors[0])
    return _QUOTED.sub(lambda match: match.group()[:40], text)[:110]


def report(results: dict[str, list[str]]) -> None:
    """Print the shares, and what stops the rest by frequency."""
    for title, mine in (
        ("HeCBench", {k: v for k, v in results.items() if k.startswith("src/")}),
        ("rocm-examples", {k: v for k, v in results.items() if not k.startswith("src/")}),
        ("both", results),
    ):
        good = sum(not errors for errors in mine.values())
        sys.stdout.write(
            f"{title}: {good} of {len(mine)} build, {100 * good / max(1, len(mine)):.1f} %\n"
        )
    stopped: dict[str, list[str]] = collections.defaultdict(list)
    for name, errors in sorted(results.items()):
        if errors:
            stopped[reason(errors)].append(name)
    for text, names in sorted(stopped.items(), key=lambda one: -len(one[1])):
        sys.stdout.write(f"{len(names):4}  {text}    {' '.join(names[:4])}\n")


def main() -> None:
    """Extract, build what is not known yet, report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("hecbench", type=Path)
    parser.add_argument("rocm_examples", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default="", help="a word of the units' names")
    parser.add_argument("--retry", action="store_true", help="build again what did not build")
    parser.add_argument("--bind", type=int, default=0, help="units whose kernels are bound")
    parser.add_argument("--seed", type=int, default=1, help="which units those are")
    options = parser.parse_args()
    os.nice(10)
    work = options.work.resolve()
    os.environ["TOKITAI_CACHE"] = str(work / "cache")
    roots = (work / "hecbench", work / "rocm-examples")
    extract(options.hecbench, roots[0], "src/")
    extract(options.rocm_examples, roots[1], "")
    if options.bind:
        every = units(roots)
        found = random.Random(options.seed).sample(every, min(options.bind, len(every)))  # noqa: S311
        shutil.rmtree(work / "drafts", ignore_errors=True)
        bind(found, work)
        return
    kept = work / "results.jsonl"
    known: dict[str, list[str]] = {}
    if kept.exists():
        for line in kept.read_text("utf-8").splitlines():
            row = json.loads(line)
            known[row["unit"]] = row["errors"]
    chosen = [one for one in units(roots) if options.only in one.name]
    with kept.open("a", encoding="utf-8") as out:
        for number, unit in enumerate(chosen, start=1):
            if unit.name not in known or (options.retry and known[unit.name]):
                _, known[unit.name] = attempt(unit)
                out.write(json.dumps({"unit": unit.name, "errors": known[unit.name]}) + "\n")
                out.flush()
                sys.stderr.write(f"\r{number}/{len(chosen)} {unit.name[:70]:70}")
    sys.stderr.write("\n")
    report({one.name: known[one.name] for one in chosen})


if __name__ == "__main__":
    main()
