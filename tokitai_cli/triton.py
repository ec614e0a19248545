"""Triton kernels verified from Python, with the user's own Triton and no GPU.

Example, in a test:

    from tokitai_cli import triton
    outcome = triton.verify(
        add, signature={"a": "*fp32", "b": "*fp32", "c": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 1024}, sizes={"n": 1000}, grid=["ceil_div(n, 1024)"],
        shapes={"a": ["n"], "b": ["n"], "c": ["n"]}, formula=added, out=tmp_path,
    )
    assert outcome.evidence.verdict == "verified"
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokitai_cli.core.errors import InadmissibleError, UsageError
from tokitai_cli.core.model.device import DeviceOptions, warp_size_of

if TYPE_CHECKING:
    from tokitai_cli.run.loop import RunOutcome

_DIVISIBLE = [["tt.divisibility", 16]]
# Files in the folder of a run.
_CODE_OBJECT, _CUBIN = "hsaco", "cubin"
_NVIDIA = "sm_"  # in front of the number of an architecture
_FORMULA, _SPEC = "formula.py", "spec.yaml"


def verify(  # noqa: PLR0913 - by keyword, what a spec has
    kernel: Any,
    *,
    signature: Mapping[str, str],
    formula: Callable[..., Any],
    shapes: Mapping[str, Sequence[int | str]],
    grid: Sequence[int | str],
    out: Path,
    constexprs: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    scalars: Mapping[str, float] | None = None,
    draws: Mapping[str, Mapping[str, object]] | None = None,
    divisible: Sequence[str] = (),
    num_warps: int = 4,
    arch: str = "gfx1101",
    accumulate: str = "",
    metric: str = "bound",
    compile_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> RunOutcome:
    """Compile a function of `triton.jit` for a GPU, run its machine code, and judge what it computes.

    arch: a processor of AMD (gfx1101, gfx942), whose machine code is executed here without a GPU, or an
    architecture of NVIDIA (sm_90), whose code runs on the GPU of this machine.

    signature: Triton's types by parameter ("*fp32", "i32", "constexpr"). constexprs: values of those.
    sizes: of integer parameters, and of other names in `shapes` and `grid`, which are numbers or
    expressions of a spec. scalars: float parameters. draws: of inputs, as in a spec. divisible:
    parameters that are multiples of 16; arrays always are. formula: a function of (params, inputs,
    scalars) that stands for itself: its text goes beside the spec. accumulate, metric: as in a spec.
    compile_options: of `triton.compile`. options: those of `tokitai_cli.verify`.

    The machine code, the spec and the formula are written into the folder `out`, reports below it.
    Raises InadmissibleError without Triton, UsageError for what a spec cannot say, SpecError.
    """
    from tokitai_cli import verify as verified
    from tokitai_cli.devices import triton_metadata as compiled
    from tokitai_cli.drafts.compiled import CompiledWriter, Given

    is_nvidia = arch.startswith(_NVIDIA)
    out.mkdir(parents=True, exist_ok=True)
    made = _compile(
        kernel,
        signature,
        constexprs or {},
        divisible,
        arch,
        {"num_warps": num_warps, **(compile_options or {})},
    )
    source = _write(made, _CUBIN if is_nvidia else _CODE_OBJECT, out)
    (out / _FORMULA).write_text(_text_of(formula), encoding="utf-8")
    given = Given(
        sizes=sizes or {},
        shapes=shapes,
        scalars=scalars or {},
        grid=grid,
        formula=f"{_FORMULA}:{formula.__name__}",
        accumulate=accumulate,
        draws=draws or {},
        metric=metric,
    )
    spec = out / _SPEC
    spec.write_text(CompiledWriter(compiled.read(source), out, given).spec(), encoding="utf-8")
    device = options.pop("device", "cuda" if is_nvidia else "gfx")
    return verified(str(spec), device=device, arch=arch, out=out / "reports", **options)


def _write(made: Any, form: str, out: Path) -> Path:
    """Write machine code of that form, with what else tells of it, into `out`; its path."""
    source = out / f"{made.metadata.name}.{form}"
    source.write_bytes(made.asm[form])
    source.with_suffix(".ttir").write_text(made.asm["ttir"], encoding="utf-8")
    source.with_suffix(".json").write_text(_metadata(made.metadata), encoding="utf-8")
    return source


def _compile(
    kernel: Any,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any],
    divisible: Sequence[str],
    arch: str,
    options: Mapping[str, Any],
) -> Any:
    """What `triton.compile` makes of the kernel."""
    try:
        triton: Any = importlib.import_module("triton")
        target: Any = importlib.import_module("triton.backends.compiler")
    except ImportError as error:
        raise InadmissibleError(
            f"Triton cannot be imported: {error}", hint="`pip install triton`, of any version"
        ) from None
    attributes = {
        (at,): _DIVISIBLE
        for at, (name, kind) in enumerate(signature.items())
        if kind.startswith("*") or name in divisible
    }
    source = triton.compiler.ASTSource(
        fn=kernel, signature=dict(signature), constexprs=dict(constexprs), attrs=attributes
    )
    number = arch.removeprefix(_NVIDIA)
    if number != arch and not number.isdigit():
        raise UsageError(
            f"arch {arch!r} is not an NVIDIA architecture", hint="give one such as sm_90"
        )
    backend = ("cuda", int(number)) if number != arch else ("hip", arch)
    lanes = warp_size_of("gfx" if number == arch else "cuda", arch, DeviceOptions())
    return triton.compile(source, target=target.GPUTarget(*backend, lanes), options=dict(options))


def _metadata(metadata: Any) -> str:
    """What a spec needs of it, as the file of Triton's cache has it."""
    import msgspec

    names = (
        "name",
        "num_warps",
        "num_ctas",
        "launch_cooperative_grid",
        "shared",
        "global_scratch_size",
        "profile_scratch_size",
        "triton_version",
    )
    told = {name: getattr(metadata, name, None) for name in names}
    target = metadata.target
    told["target"] = {
        "backend": target.backend, "arch": target.arch, "warp_size": target.warp_size
    }  # fmt: skip
    return msgspec.json.encode(
        {key: value for key, value in told.items() if value is not None}
    ).decode()


def _text_of(formula: Callable[..., Any]) -> str:
    """A file with the formula alone. Raises UsageError for a function without a text of its own."""
    name = getattr(formula, "__name__", "")
    try:
        text = textwrap.dedent(inspect.getsource(formula))
    except (OSError, TypeError):
        text = ""
    if not text.startswith("def "):
        raise UsageError(
            f"the formula {name or formula!r} has no source text",
            hint="give a function defined in a file with `def`",
        )
    return f"import numpy as np\n\nfrom tokitai_cli.formula import *  # noqa: F403\n\n\n{text}"
