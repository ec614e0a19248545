"""What a run was asked to do, resolved once and frozen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tokitai_cli import report, spec
from tokitai_cli.errors import Location, SpecError, UsageError, near
from tokitai_cli.model.case import LoadedSpec
from tokitai_cli.model.settings import MIN_REPEAT, Settings
from tokitai_cli.plan import Selection, expand_values

# File systems take 255; the longest addition is .NAME.cases.jsonl.RANDOM.tmp.
MAX_NAME_BYTES = 200


class RunOptions(msgspec.Struct, frozen=True):
    """Options of one run.

    called: how a command line names the spec, where that is not by the path that it was read from.
    """

    loaded: LoadedSpec
    selection: Selection
    device: str = "auto"
    settings: Settings = Settings()
    out: Path = Path("reports")
    name: str = ""
    formats: tuple[str, ...] = ("md",)
    save_arrays: bool = False
    build_only: bool = False
    verb: str = "verify"
    called: str = ""


def load_op(op: str) -> LoadedSpec:
    """Spec of a built-in op, or of the file `op` is the path of. Raises UsageError, SpecError."""
    return spec.load(spec.find(op))


def resolve(  # noqa: PLR0913 - one keyword per option of the command line
    op: str | LoadedSpec,
    *,
    shapes: Mapping[str, str | int | Sequence[int]] | None = None,
    device: str = "auto",
    variant: Sequence[str] = (),
    profile: Sequence[str] = (),
    suite: str = "",
    seed: str | int | Sequence[int] = "0",
    repeat: int = MIN_REPEAT,
    warmup: int = 0,
    timeout: float = Settings().timeout,
    arch: str = "",
    gpu: int = 0,
    warp_size: int = 0,
    build_only: bool = False,
    out: str | Path = "reports",
    name: str = "",
    format: Sequence[str] = ("md",),
    save_arrays: bool = False,
    verb: str = "verify",
) -> RunOptions:
    """Check every option on its own and freeze them. Raises UsageError and SpecError.

    `shapes` maps params of the op to a value, a list, or text such as "16,64" or "64:256:64".
    """
    check_run(warp_size=warp_size, repeat=repeat, timeout=timeout, out=out)
    if name and (name != Path(name).name or name.startswith(".")):
        raise UsageError(f"--name {name}: a plain file name without folders")
    loaded = op if isinstance(op, LoadedSpec) else load_op(op)
    check_text(loaded.path)
    name = name or loaded.spec.op
    if len(name.encode(errors="surrogateescape")) > MAX_NAME_BYTES:
        raise UsageError(f"--name: longer than {MAX_NAME_BYTES} bytes", mend="use a shorter name")
    return RunOptions(
        loaded=loaded,
        selection=Selection(
            shapes=_shapes(loaded, shapes or {}),
            variants=words(variant),
            profiles=words(profile),
            seeds=values("seed", seed),
            suite=suite or None,
        ),
        device=device,
        settings=Settings(
            arch=arch, gpu=gpu, warp_size=warp_size, repeat=repeat, warmup=warmup, timeout=timeout
        ),
        out=Path(out),
        name=name,
        formats=formats(format),
        save_arrays=save_arrays,
        build_only=build_only,
        verb=verb,
    )


def check_run(*, warp_size: int, repeat: int, timeout: float, out: str | Path) -> None:
    """Raise UsageError for a value that no run can have, of one spec or of many."""
    if warp_size not in {0, 32, 64}:
        raise UsageError(f"--warp-size {warp_size}: a warp has 32 or 64 lanes")
    if repeat < MIN_REPEAT:
        raise UsageError(
            f"--repeat {repeat}: at least {MIN_REPEAT} repetitions are needed",
            mend="never-written elements only show under two complementary sentinels",
        )
    if not (math.isfinite(timeout) and timeout > 0):
        raise UsageError(f"--timeout {timeout}: seconds, more than 0")
    if not str(out):
        raise UsageError("--out: no folder is named", mend="write --out . for this one")


def check_text(path: Path) -> None:
    """Raise SpecError for a path that no generated source, digest or JSON could name."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        mend = "rename the folder or file, or run in a UTF-8 locale (LC_ALL=C.UTF-8)"
        raise SpecError("the path is no UTF-8 text", where=Location(path), mend=mend) from None


def words(given: Sequence[str]) -> tuple[str, ...]:
    """Repeated options and comma lists, in order, without repeats."""
    parts = [word.strip() for value in given for word in value.split(",")]
    return tuple(dict.fromkeys(word for word in parts if word))


def formats(given: Sequence[str]) -> tuple[str, ...]:
    """Formats of reports, as `words`. Raises UsageError for an unknown one."""
    return tuple(map(report.check_format, words(given)))


def _shapes(
    loaded: LoadedSpec, shapes: Mapping[str, str | int | Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    given: dict[str, tuple[int, ...]] = {}
    for name, value in shapes.items():
        if name not in loaded.spec.params:
            raise UsageError(
                f"{loaded.spec.op} has no parameter {name}", mend=near(name, loaded.spec.params)
            )
        if value != "":
            given[name] = values(name, value)
    return given


def values(name: str, value: str | int | Sequence[int]) -> tuple[int, ...]:
    """Integers of an option `name`: one, several, or text as `expand_values` takes it."""
    if isinstance(value, str):
        return expand_values(name, value)
    return (value,) if isinstance(value, int) else tuple(value)
