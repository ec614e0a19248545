"""A spec of faults.hip: two variants of each kernel, with its fault and without."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).parent / "faults.hip"
_ORACLE = """import numpy as np
def any(params, inputs, scalars):
    return {"y": {"reference": inputs["x"].astype(float), "error": np.full(64, np.inf)}}
"""
_VARIANT = """
  {name}-{wrong}:
    source: faults.hip
    inputs:
      x: {{dtype: float32, shape: [n]}}
      k: {{dtype: int32, shape: [n], draw: {{kind: constant, value: 0}}}}
    outputs:
      y: {{dtype: float32, shape: [n]}}
    workspaces:
      ws: {{dtype: float32, shape: [n], init: {init}}}
    launches:
      - kernel: {name}<{wrong}>
        grid: [{grid}]
        block: [{block}]
        shared: {shared}
        args: [x, y, ws, k, n]
    oracle: oracle.py:any
    checks:
      - {{metric: bound}}"""
_ZEROED = ("ticket", "plain_first", "unset_addend", "set_beside_adds", "handed_on")


def kernels(source: Path = SOURCE) -> dict[str, tuple[str, str, str]]:
    """Grid, block and shared bytes of each kernel of the source."""
    found = re.findall(r"// (\d+) (\d+)(?: (\d+))?\nKERNEL (\w+)", source.read_text())
    return {name: (grid, block, shared or "0") for grid, block, shared, name in found}


def marks(name: str, source: Path = SOURCE) -> set[tuple[str, int]]:
    """Kind and line of each finding that a kernel's wrong form must give."""
    lines = source.read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"KERNEL {name}("))
    end = next(n for n in range(start, len(lines)) if lines[n] == "}")
    found = set()
    for number, line in enumerate(lines, 1):
        match = re.search(r"// <- (\S+)(?: (\w+))?$", line)
        if match and (match[2] == name or (not match[2] and start < number - 1 < end)):
            found.add((match[1], number))
    return found


def write_spec(folder: Path, names: Sequence[str], source: Path = SOURCE) -> Path:
    """Write a spec with the kernels `names`, and what it needs, into `folder`."""
    (folder / "faults.hip").write_text(source.read_text())
    (folder / "oracle.py").write_text(_ORACLE)
    variants = [
        _VARIANT.format(
            name=name,
            wrong=wrong,
            grid=grid,
            block=block,
            shared=shared,
            init="zero" if name in _ZEROED else "sentinel",
        )
        for name, (grid, block, shared) in kernels(source).items()
        if name in names
        for wrong in ("true", "false")
    ]
    text = (
        "schema: tokitai/spec/v1\nop: faults\ntitle: Faults that sanitizers find\n"
        f"params:\n  n: {{default: 64}}\nvariants:{''.join(variants)}\n"
        "profiles:\n  normal: {draw: normal}\n"
    )
    path = folder / "faults.yaml"
    path.write_text(text)
    return path
