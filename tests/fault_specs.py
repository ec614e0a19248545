"""Specs of the wrong kernels: the shipped ones with their kernels replaced, and one of small kernels.

Every spec is one file with all its variants, so that they share an artifact. A variant is named by the
shipped one, the output that has the fault (where there are several) and the fault: `bwd-grad-x-zeros`.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.runs import KERNELS, shipped_tree

Tree = dict[str, Any]

ORACLES = Path(__file__).parent / "oracle_fixtures" / "faulty_blocks.py"
_ENUM = re.search(
    r"enum Fault \{(.*?)\}", (KERNELS / "faults.hpp").read_text(encoding="utf-8"), re.DOTALL
)
assert _ENUM is not None
# Faults by name, as in faults.hpp: kLastTerm is `last-term`.
NUMBERS = {
    re.sub(r"(?<!^)(?=[A-Z])", "-", name[1:]).lower(): number
    for number, name in enumerate(re.findall(r"k\w+", _ENUM[1]))
}

STORE = ("zeros", "wrong-sign", "rolled-row", "skipped-column", "zero-column")
# Kernels in the place of the shipped ones, launch by launch.
KERNELS_OF = {
    ("gemm-bw", "grad-a"): ("grad_a",),
    ("gemm-bw", "grad-b"): ("grad_b",),
    ("embedding", "fwd"): ("lookup",),
    ("embedding", "bwd"): ("add", "finish"),
    ("softmax", "fwd"): ("softmax_fwd",),
    ("softmax", "grad"): ("softmax_grad",),
    ("layernorm", "fwd"): ("layernorm_fwd<__half>",),
    ("layernorm", "fwd-eps"): ("layernorm_fwd<__half>",),
    ("layernorm", "bwd"): ("layernorm_bwd_rows", "layernorm_bwd_columns"),
}
SOURCES = {"gemm-bw": "faulty_gemm.hip"}
# Faults that each variant is tried with on the shipped spec, beside those of the store: output, fault.
OWN_FAULTS: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("gemm-bw", "grad-a"): (("grad_a", "last-term"), ("grad_a", "halved")),
    ("gemm-bw", "grad-b"): (("grad_b", "last-term"), ("grad_b", "halved")),
    ("embedding", "fwd"): (("output", "last-term"),),
    ("embedding", "bwd"): (("grad_weight", "last-term"), ("grad_weight", "no-sum")),
    ("softmax", "fwd"): (("y", "last-term"), ("y", "no-sum"), ("y", "half-exponentials")),
    ("softmax", "grad"): (("grad_x", "last-term"), ("grad_x", "no-sum"), ("grad_x", "halved")),
    ("layernorm", "fwd"): (
        ("y", "last-term"),
        ("y", "last-square"),
        ("y", "no-sum"),
        ("y", "no-eps"),
        ("y", "unbiased"),
    ),
    ("layernorm", "fwd-eps"): (("y", "fixed-eps"), ("y", "no-eps")),
    ("layernorm", "bwd"): (
        ("grad_x", "last-term"),
        ("grad_x", "last-square"),
        ("grad_x", "no-sum"),
        ("grad_x", "no-projection"),
        ("grad_x", "halved"),
        ("grad_gamma", "last-term"),
        ("grad_beta", "last-term"),
    ),
}
# Variants that are another one with another setting: they are tried with their own faults alone.
AGAIN = {("layernorm", "fwd-eps")}
LONGEST_ROW = 256
FLAT = [{"metric": "abs", "limit": 1e-2}]
FLAT_RELATIVE = [*FLAT, {"metric": "rel", "limit": 1e-2}]


def named(variant: str, output: str, fault: str, outputs: Sequence[str]) -> str:
    """Name of the variant with this fault; faults of no one output have none in it."""
    where = (output,) if len(outputs) > 1 and output and fault != "right" else ()
    return "-".join((variant, *where, fault)).replace("_", "-")


def faulty(op: str, variant: str, fault: str = "right", output: str = "", **changes: Any) -> Tree:
    """The shipped variant with the faulty kernels in the place of its own, and `changes`."""
    one: Tree = shipped_tree(op)["variants"][variant]
    outputs = [*one.get("outputs", {}), *one.get("inout", {})]
    for launch, kernel in zip(one["launches"], KERNELS_OF[op, variant], strict=True):
        launch["kernel"] = kernel
        launch["args"].append(NUMBERS[fault])
        if len(outputs) > 1:
            launch["args"].append(outputs.index(output or outputs[0]))
    if "checks" in changes:  # they judge alone
        one.pop("replay", None)
        one.pop("properties", None)
    one.update(changes)
    return one


def every_fault(op: str, variant: str) -> dict[str, tuple[str, str]]:
    """Output and fault by name, for the faults that each variant is tried with; and the right one."""
    one = shipped_tree(op)["variants"][variant]
    outputs = [*one.get("outputs", {}), *one.get("inout", {})]
    pairs = [("", "right")]
    if (op, variant) not in AGAIN:
        pairs += [(output, fault) for output in outputs for fault in STORE]
    pairs += OWN_FAULTS[op, variant]
    return {named(variant, output, fault, outputs): (output, fault) for output, fault in pairs}


def profiles_of(op: str, variant: str) -> list[str]:
    """Profiles of the shipped variant whose name `variant` starts with."""
    tree = shipped_tree(op)
    name = max((name for name in tree["variants"] if variant.startswith(name)), key=len)
    return list(tree["variants"][name].get("profiles", tree["profiles"]))


def _gemm() -> tuple[dict[str, Tree], Tree]:
    names = ("tail", "half-sum")
    return {f"grad-a-{name}": faulty("gemm-bw", "grad-a", name) for name in names}, {}


def _embedding() -> tuple[dict[str, Tree], Tree]:
    found = {
        f"{variant}-{fault}": faulty("embedding", variant, fault)
        for variant, fault in (
            ("fwd", "clamped"),
            ("fwd", "overwritten"),
            ("bwd", "clamped"),
            ("bwd", "plain-update"),
        )
    }
    half = faulty("embedding", "bwd")
    half["outputs"]["grad_weight"]["init"] = "zero"
    del half["workspaces"]
    arguments = ["indices", "grad_output", "grad_weight", "dim", "vocab"]
    half["launches"] = [{**half["launches"][0], "kernel": "add_half", "args": arguments}]
    found["bwd-half-steps"] = half
    step = faulty("embedding", "bwd")
    arguments = ["indices", "grad_output", "sums", "queries", "dim", "vocab"]
    step["launches"][0] = {"kernel": "add_in_step", "grid": ["dim"], "block": [256],
                           "args": arguments}  # fmt: skip
    found["bwd-in-step"] = step
    ones = {
        "hot-ones": {
            "draw": {"kind": "constant", "value": 1},
            "inputs": {"indices": {"kind": "index-hot", "below": "vocab"}},
        }
    }
    return found, ones


def _softmax() -> tuple[dict[str, Tree], Tree]:
    faults = (
        "half-sum",
        "padded",
        "drops-nan",
        "nine-rows",
        "tail",
        "no-shift",
        "short-max",
        "half-partial",
    )
    found = {f"fwd-{fault}": faulty("softmax", "fwd", fault) for fault in faults}
    for fault in ("right", "zeros"):
        found[f"fwd-flat-{fault}"] = faulty("softmax", "fwd", fault, checks=FLAT)
        found[f"grad-flat-{fault}"] = faulty("softmax", "grad", fault, checks=FLAT)
    found["fwd-relative-zeros"] = faulty("softmax", "fwd", "zeros", checks=FLAT_RELATIVE)
    finer = [{"metric": "abs", "limit": 1e-3}]
    found["fwd-flat-half-sum"] = faulty("softmax", "fwd", "half-sum", checks=finer)
    both = [{"metric": "bound"}, *finer]
    found["fwd-both-half-sum"] = faulty("softmax", "fwd", "half-sum", checks=both)
    found["fwd-fast-math"] = faulty("softmax", "fwd", flags=["-ffast-math"])
    profiles: Tree = {
        "minus-30": {"draw": {"kind": "constant", "value": -30}},
        "narrow": {"draw": "normal", "inputs": {"s": {"kind": "softmax", "scale": 1}}},
    }
    return found, profiles


def _layernorm() -> tuple[dict[str, Tree], Tree]:
    found = {
        f"fwd-{fault}": faulty("layernorm", "fwd", fault)
        for fault in ("one-pass", "no-barrier", "half-sum")
    }
    half = faulty("layernorm", "bwd", "half-statistics", "grad_x")
    found["bwd-grad-x-half-statistics"] = half
    found["bwd-grad-beta-half-sum"] = faulty("layernorm", "bwd", "half-sum", "grad_beta")
    found["bwd-grad-x-no-barrier"] = faulty("layernorm", "bwd", "no-barrier", "grad_x")
    for fault in ("right", "last-term", "unbiased", "no-merge"):
        welford = faulty("layernorm", "fwd", fault)
        welford["launches"][0]["kernel"] = "layernorm_welford"
        found[f"fwd-two-pass-welford-{fault}"] = copy.deepcopy(welford)
        welford["reduction"]["welford"] = True
        found[f"fwd-welford-{fault}"] = welford
    for fault in ("right", "one-pass"):
        single = faulty("layernorm", "fwd", fault)
        single["inputs"]["x"]["dtype"] = "float32"
        single["launches"][0]["kernel"] = "layernorm_fwd<float>"
        single.pop("replay", None)
        single["checks"] = [check for check in single["checks"] if "against" not in check]
        found[f"single-{fault}"] = single
    profiles: Tree = {
        f"mean-{mean}": {"draw": {"kind": "uniform", "lo": mean, "hi": mean + 0.015}}
        for mean in (0, 100, 1000, 10000)
    }
    profiles["grad-ones"] = {"draw": "normal", "inputs": {"grad_y": "constant"}}
    return found, profiles


SPECIAL = {
    "gemm-bw": _gemm,
    "embedding": _embedding,
    "softmax": _softmax,
    "layernorm": _layernorm,
}


def _block(kernel: str, oracle: str, last: int, launch: Tree, **arrays: Tree) -> Tree:
    floats = any(array["dtype"].startswith("float") for array in arrays["outputs"].values())
    return {
        "source": str(KERNELS / "faulty_blocks.hip"),
        "oracle": oracle,
        "checks": [{"metric": "bound" if floats else "exact"}],
        "launches": [{"kernel": kernel, **launch, "args": [*launch["args"], last]}],
        **arrays,
    }


def _array(dtype: str, *shape: str | int, **more: Any) -> Tree:
    return {"dtype": dtype, "shape": list(shape), **more}


def _launch(grid: str | int, block: int, *args: str) -> Tree:
    return {"grid": [grid], "block": [block], "args": list(args)}


_FLAT = _launch("ceil_div(n, 256)", 256, "x", "y", "n")
_ROWS = ("x", "y", "rows", "columns")
_WAVES = _array("float32", "rows", 64)
_MATRIX = _array("float32", "rows", "columns")
_VECTOR = _array("float32", "n")
_A_ROW = _array("float32", "rows")
_BELOW = {below: {"draw": {"kind": "index-uniform", "below": below}} for below in (16, 1000)}
# Variant, its faults beside `right`, kernel, oracle, launch, x and the output.
_SMALL: list[tuple[str, dict[str, int] | str, str, str, Tree, Tree, Tree]] = [
    ("wave-sums", "short-shuffle", "wave_sums", "row_sums", _launch("rows", 64, "x", "y"),
     _WAVES, {"y": _A_ROW}),
    ("scaled-rows", "no-barrier", "scaled_rows", "scaled_rows",
     _launch("rows // 4", 64, "x", "y"), _WAVES, {"y": _WAVES}),
    ("paired-rows", "into-next-row", "paired_rows", "scaled_rows", _launch("rows", 2, *_ROWS),
     _MATRIX, {"y": _MATRIX}),
    ("histogram", "uncleared", "histogram", "bins", _launch(1, 64, "x", "counts", "n"),
     _array("int32", "n", **_BELOW[16]), {"counts": _array("int32", 16)}),
    ("least", "unset", "least", "least", _launch(1, 64, "x", "y", "n"),
     _array("uint32", "n", **_BELOW[1000]), {"y": _array("uint32", 1)}),
    ("row-max", "drops-nan", "row_max", "row_max", _launch("ceil_div(rows, 64)", 64, *_ROWS),
     _MATRIX, {"y": _A_ROW}),
    ("column-sum", "half-sum", "column_sum", "column_sums",
     _launch("ceil_div(columns, 64)", 64, *_ROWS),
     _array("float16", "rows", "columns"), {"y": _array("float16", "columns")}),
    ("differences", "tail", "differences", "differences", _FLAT, _VECTOR, {"y": _VECTOR}),
    # The next element lies in the guard band; 33,280 bytes behind 8,192 lies nothing.
    ("warmed-up", {"right": 0, "behind": 1, "outside": 8320}, "warmed_up", "copy", _FLAT,
     _VECTOR, {"y": _VECTOR}),
]  # fmt: skip


def _small() -> dict[str, Tree]:
    """Variants of the small kernels, each right and with its faults."""
    found: dict[str, Tree] = {}
    for name, faults, kernel, oracle, launch, x, outputs in _SMALL:
        numbers = (
            {one: NUMBERS[one] for one in ("right", faults)} if isinstance(faults, str) else faults
        )
        for fault, last in numbers.items():
            block = _block(kernel, oracle, last, launch, inputs={"x": x}, outputs=outputs)
            found[f"{name}-{fault}"] = copy.deepcopy(block)
    return found


def write_spec(op: str, folder: Path) -> Path:
    """Write the spec of all variants of `op`, or of the small kernels (`blocks`); returns its path."""
    if op == "blocks":
        variants = _small()
        for one in variants.values():
            one["oracle"] = f"{os.path.relpath(ORACLES, folder)}:{one['oracle']}"
        defaults = {"rows": 64, "columns": 3, "n": 2048}
        tree: Tree = {
            "schema": "tokitai/spec/v1",
            "op": "blocks",
            "title": "Small kernels",
            "params": {name: {"default": value} for name, value in defaults.items()},
            "profiles": {"normal": {}, "special": {}, "ones": {"draw": "constant"}},
        }
        source = "faulty_blocks.hip"
    else:
        tree = shipped_tree(op)
        variants, profiles = SPECIAL[op]()
        for variant in (one for one in tree["variants"] if (op, one) in KERNELS_OF):
            for name, (output, fault) in every_fault(op, variant).items():
                variants[name] = faulty(op, variant, fault, output)
        for profile in profiles:  # more than the shipped variant has; asked for by name
            for one in variants.values():
                known = one["profiles"] if "profiles" in one else tree["profiles"]
                one["profiles"] = [*known, profile]
        tree["profiles"] |= profiles
        # Thousands of wrong layernorms of a longer row would take minutes.
        quick = tree["suites"]["quick"]
        short = [one for one in quick if one["shape"].get("cols", 0) <= LONGEST_ROW]
        tree["suites"] = {"quick": short if op == "layernorm" else quick}
        source = SOURCES.get(op, f"faulty_{op}.hip")
    for one in variants.values():
        one["source"] = os.path.relpath(KERNELS / source, folder)
    tree["variants"] = variants
    path = folder / f"faulty-{op}.yaml"
    path.write_text(json.dumps(tree, indent=1), encoding="utf-8")  # JSON is YAML
    return path
