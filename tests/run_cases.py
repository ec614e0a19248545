"""Cases made by hand for the tests of build and run; no spec file is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.model.case import (
    BufferArg,
    BufferPlan,
    Case,
    LaunchPlan,
    LoadedSpec,
    Role,
    ScalarValue,
)
from tokitai_cli.core.model.spec import Buffer, Check, Launch, Profile, ScalarArg, Spec, Variant

Args = Sequence[BufferArg | ScalarValue]
Kernels = Sequence[str]


def integer(name: str, value: int) -> ScalarValue:
    return ScalarValue(name, "", value.to_bytes(8, "little", signed=True), str(value))


def make_cases(
    source: Path,
    buffers: Sequence[BufferPlan],
    variants: Mapping[str, Kernels],
    *,
    args: Args | None = None,
    defines: Mapping[str, str | int] | None = None,
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (1, 1, 1),
) -> dict[str, Case]:
    """A case for each variant; a variant launches its kernels one after the other, on `args`.

    Without `args`, the kernels take every buffer but the symbols.
    """
    if args is None:
        args = [BufferArg(buffer.name) for buffer in buffers if buffer.role is not Role.SYMBOL]
    made = {name: _variant(source, buffers, list(k), args, defines) for name, k in variants.items()}
    spec = Spec(
        schema="tokitai/spec/v1",
        op="add",
        title="add",
        params={},
        variants=made,
        profiles={"normal": Profile()},
    )
    loaded = LoadedSpec(spec, source.parent / "spec.yaml", "", "")
    return {
        name: Case(
            loaded,
            name,
            {"n": 8},
            "normal",
            1,
            tuple(buffers),
            tuple(
                LaunchPlan(index, kernel, grid, block, 0, tuple(args))
                for index, kernel in enumerate(kernels)
            ),
        )
        for name, kernels in variants.items()
    }


def make_case(source: Path, buffers: Sequence[BufferPlan], kernel: str = "k", **more: Any) -> Case:
    """The case of a spec with one variant and one launch."""
    return make_cases(source, buffers, {"plain": [kernel]}, **more)["plain"]


def _variant(
    source: Path,
    buffers: Sequence[BufferPlan],
    kernels: list[str],
    args: Args,
    defines: Mapping[str, str | int] | None,
) -> Variant:
    def of(role: Role) -> dict[str, Buffer]:
        return {
            buffer.name: Buffer(dtype=buffer.dtype, shape=list(buffer.shape), init=buffer.init)  # type: ignore[arg-type]
            for buffer in buffers
            if buffer.role is role
        }

    names = [arg.buffer if isinstance(arg, BufferArg) else arg.name for arg in args]
    scalars = {
        arg.name: ScalarArg(dtype=arg.dtype, value=arg.shown)  # type: ignore[arg-type]
        for arg in args
        if isinstance(arg, ScalarValue) and arg.dtype
    }
    launches = [Launch(kernel=name, grid=[1], block=[1], args=list(names)) for name in kernels]
    return Variant(
        source=source.name,
        launches=launches,
        given_oracle="none",
        checks=[Check(metric="exact")],
        inputs=of(Role.INPUT),
        outputs=of(Role.OUTPUT),
        inout=of(Role.INOUT),
        workspaces=of(Role.WORKSPACE),
        symbols=of(Role.SYMBOL),
        scalars=scalars,
        defines=dict(defines or {}),
    )


def arrays_of(case: Case) -> dict[str, NDArray[Any]]:
    """Bytes that count up, in every buffer whose content the tool writes."""
    drawn = case.buffers_of(Role.INPUT, Role.INOUT, Role.SYMBOL)
    return {
        buffer.name: (np.arange(buffer.nbytes) % 256)
        .astype(np.uint8)
        .view(buffer.dtype)
        .reshape(buffer.shape)
        for buffer in drawn
    }
