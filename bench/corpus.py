"""How many HIP files of two public repositories build for the cpu device, and what stops the rest.

    python -m bench.corpus HECBENCH_GIT ROCM_EXAMPLES_GIT --work DIR [--only WORD] [--retry] [--bind N]

The folders are git directories (ORNL/HeCBench at 49175104, ROCm/rocm-examples at 7dfb7d40); their trees
are written into DIR. Each translation unit (HeCBench: what its Makefiles compile; rocm-examples: each
.hip) that holds `__global__`, in itself or in what it includes of its program, is built by the tool's
own steps: kernels taken out of host code, compiled, linked with the unit that serves them. The
compiler is told not to optimise. Results are kept in DIR/results.jsonl, so that a run can go on.

With --bind N it takes N units at random, builds each kernel that `tokitai find` can bind by the spec
that find drafts for it, and runs it once at the sizes that are guessed there.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tokitai_cli.build import Artifact, build
from tokitai_cli.devices.cpu import CpuDevice
from tokitai_cli.errors import TokitaiError
from tokitai_cli.inputs import draw
from tokitai_cli.kernel_server import Server
from tokitai_cli.model.buffers import symbols_of
from tokitai_cli.model.case import LoadedSpec
from tokitai_cli.model.device import WARP_SIZES, DeviceOptions
from tokitai_cli.model.found import Unread
from tokitai_cli.model.harness import HarnessRequest, KernelEntry, kernel_entry
from tokitai_cli.model.spec import Variant
from tokitai_cli.pipeline.find import drafts_of, write_drafts
from tokitai_cli.plan import Selection, memory_bytes, plan
from tokitai_cli.spec import load
from tokitai_cli.spec.gaps import GAP

SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".hip", ".C")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.M)
_MOST_BYTES, _RUN_SECONDS = 1 << 30, 20.0
_QUOTED = re.compile(r"['\u2018`][^'\u2019]*['\u2019]")


class Unit(msgspec.Struct, frozen=True):
    """A source with the include folders, macros and standard that its program compiles it with."""

    name: str
    source: Path
    flags: tuple[str, ...]


def extract(git: Path, folder: Path, prefix: str) -> None:
    """Write the files of HEAD below `prefix` into `folder`, but for those that the git lacks."""
    if (folder / ".done").exists():
        return
    git_words = ["git", "-C", str(git)]
    listing = subprocess.run(
        [*git_words, "ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True
    )
    with subprocess.Popen(
        [*git_words, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as batch:
        assert batch.stdin is not None
        assert batch.stdout is not None
        for entry in filter(None, listing.stdout.split(b"\0")):
            meta, _, path = entry.partition(b"\t")
            mode, kind, digest = meta.split()
            name = os.fsdecode(path)
            if kind != b"blob" or mode == b"120000" or not name.startswith(prefix):
                continue
            batch.stdin.write(digest + b"\n")
            batch.stdin.flush()
            head = batch.stdout.readline().split()
            if len(head) == 3:
                data = batch.stdout.read(int(head[2]) + 1)[:-1]
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
        batch.stdin.close()
    (folder / ".done").touch()


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace")


def holds_kernels(source: Path, folders: tuple[Path, ...], root: Path) -> bool:
    """Whether `__global__` stands in `source` or in what it includes from below `root`."""
    seen: set[Path] = set()
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        text = _text(path)
        if "__global__" in text:
            return True
        for name in _INCLUDE.findall(text):
            places = (Path(os.path.normpath(one / name)) for one in (path.parent, *folders))
            waiting += [one for one in places if one.is_relative_to(root) and one.is_file()][:1]
    return False


def _made(folder: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Sources that `make` would compile in `folder`, with their flags; nothing is run."""
    try:
        done = subprocess.run(
            ["make", "-n", "-B", "-k"], cwd=folder, capture_output=True, timeout=20, check=False,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in done.stdout.decode("utf-8", "replace").replace("\\\n", " ").splitlines():
        words: list[str] = []
        with contextlib.suppress(ValueError):
            words = shlex.split(line.replace("-I ", "-I"))
        flags: dict[str, None] = {}
        for word in words:
            if word.startswith("-I"):
                flags["-I" + os.path.normpath(folder / word[2:])] = None
            elif re.match(r"-D\w|-std=(?:c|gnu)\+\+", word):
                flags[word] = None
        for word in words:
            if word.endswith(SOURCES) and not word.startswith("-"):
                yield Path(os.path.normpath(folder / word)), tuple(flags)


def hecbench(root: Path) -> Iterator[Unit]:
    """Units of HeCBench's HIP programs."""
    for program in sorted((root / "src").glob("*-hip")):
        found: dict[Path, tuple[str, ...]] = {}
        for makefile in (program / "Makefile", *sorted(program.glob("*/Makefile"))):
            if makefile.is_file():
                for source, flags in _made(makefile.parent):
                    if source.is_file() and source.is_relative_to(root):
                        found.setdefault(source, flags)
        for source, flags in found.items():
            yield Unit(str(source.relative_to(root)), source, flags)


def rocm_examples(root: Path) -> Iterator[Unit]:
    """Units of ROCm's examples."""
    for source in sorted(root.rglob("*.hip")):
        near = (source.parent / "include", source.parent.parent / "include")
        folders = [f"-I{one}" for one in (root / "Common", root / "External", *near)]
        if re.search(r"std::(span|ranges)", _text(source)):
            folders.append("-std=c++20")
        yield Unit(str(source.relative_to(root)), source, tuple(folders))


def units(roots: tuple[Path, Path]) -> list[Unit]:
    """Every unit of both repositories that holds kernels."""
    found = [
        (root, one)
        for root, of in zip(roots, (hecbench, rocm_examples), strict=True)
        for one in of(root)
    ]
    return [
        one
        for root, one in found
        if holds_kernels(
            one.source, tuple(Path(f[2:]) for f in one.flags if f.startswith("-I")), root
        )
    ]


class Bound(msgspec.Struct):
    """One kernel: its draft's spec and entry where it has one, what stops its build, and its run."""

    loaded: LoadedSpec | None = None
    entry: KernelEntry | None = None
    errors: list[str] = []
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
    """Each kernel of a unit built by its drafted spec, and run once at the draft's own sizes."""
    include = tuple(Path(flag[2:]) for flag in unit.flags if flag.startswith("-I"))
    macros = (flag[2:].partition("=") for flag in unit.flags if flag.startswith("-D"))
    defines = {name: value for name, _, value in macros}
    found = drafts_of(unit.source, include, folder / "spec", defines=defines)
    if isinstance(found, Unread):
        return []
    kernels = [Bound(errors=["no draft"]) for one in found[0] if not one.spec]
    drafted: list[Bound] = []
    for path in write_drafts([one for one in found[0] if one.spec], folder):
        for file in (path, path.parent / "formula.py"):
            file.write_text(file.read_text("utf-8").replace(GAP, "# filled in:"), "utf-8")
        try:
            loaded = load(path)
            (variant,) = loaded.spec.variants.values()
            (launch,) = variant.launches
            drafted.append(Bound(loaded, kernel_entry(variant, launch, WARP_SIZES[0])))
        except TokitaiError as error:
            kernels.append(Bound(errors=[str(error)]))
    with_symbols = [one for one in drafted if symbols_of(_variant(one))]
    plain = [one for one in drafted if one not in with_symbols]
    for group in (plain, *([one] for one in with_symbols)):
        if _build_and_run(unit, group):
            for one in group if len(group) > 1 else ():
                _build_and_run(unit, [one])
    return [*kernels, *drafted]


def _variant(one: Bound) -> Variant:
    assert one.loaded is not None
    return next(iter(one.loaded.spec.variants.values()))


def _build_and_run(unit: Unit, group: list[Bound]) -> list[str]:
    """Build kernels together and run each; what stops the build, of all of them."""
    if not group:
        return []
    entries = tuple(dict.fromkeys(one.entry for one in group if one.entry is not None))
    held = symbols_of(_variant(group[0]))
    symbols = tuple((name, buffer.dtype) for name, buffer in held.items())
    artifact, errors = attempt(unit, entries, symbols)
    for one in group:
        one.errors = errors
        one.ended = _run(artifact, one) if artifact is not None else ""
    return errors


def _run(artifact: Artifact, one: Bound) -> str:
    """What ended the one case of a draft, empty where the kernels came to their end."""
    assert one.loaded is not None
    device, options = CpuDevice(), DeviceOptions(threads=1)
    command = device.launch_command(artifact.path, options)
    try:
        (case,) = plan(one.loaded, Selection()).cases
        if memory_bytes(case, 1) > _MOST_BYTES:
            return "the guessed sizes are too large to be run"
        arrays = {name: drawn.array for name, drawn in draw(case).items()}
        with Server(command, device.launch_environment(options), artifact.request) as server:
            server.run(case, arrays, repetitions=1, timeout=_RUN_SECONDS)
    except (TokitaiError, ValueError) as error:
        return str(error).splitlines()[0]
    return ""


def bind(chosen: list[Unit], work: Path) -> None:
    """Print how many kernels of some units have a draft that builds, and how many of these run."""
    every: list[Bound] = []
    for number, unit in enumerate(chosen):
        here = bound(unit, work / "drafts" / str(number))
        for one in here:
            ended = re.sub(r"0x[0-9a-f]+, ?", "", one.ended)[:130]
            told = reason(one.errors) if one.errors else ended
            name = one.entry.expr if one.entry else ""
            if told:
                sys.stdout.write(f"      {unit.name} {name}: {told}\n")
        every += here
        sys.stdout.flush()
        sys.stderr.write(f"\r{number + 1}/{len(chosen)} {unit.name[:70]:70}")
    count = len(every)
    drafted = sum(one.errors != ["no draft"] for one in every)
    built = sum(not one.errors for one in every)
    ran = sum(not one.errors and not one.ended for one in every)
    sys.stdout.write(
        f"{len(chosen)} units: {count} kernels, {drafted} with a draft, {built} of them build"
        f" ({100 * built / max(1, count):.1f} % of the kernels), {ran} of these run to their end"
        f" at the guessed sizes ({100 * ran / max(1, built):.1f} %)\n"
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
        found = random.Random(options.seed).sample(units(roots), options.bind)  # noqa: S311
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
