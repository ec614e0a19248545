"""What lies around an input shows where a kernel takes it in, whatever it does with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.runs import run
from tests.spec_example import example, write_example
from tokitai_cli.core.dtypes import DTYPES, FORMATS, numpy_dtype
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run.child.memory_file import outside

SUM = "c[i] = a[i] + b[i];"
PAST = {
    "added": "c[i] = a[i] + b[i] + (i == n - 1 ? a[n] : 0.0f);",
    "times-0": "c[i] = a[i] + b[i] + 0.0f * a[i + 1];",
    "in-front": "c[i] = a[i] + b[i] + 0.0f * a[i - 1];",
    "maximum": "c[i] = i == n - 1 ? fmaxf(a[i] + b[i], a[n]) : a[i] + b[i];",
    "minimum": "c[i] = i == n - 1 ? fminf(a[i] + b[i], a[n + 1]) : a[i] + b[i];",
}


@pytest.mark.parametrize("body", PAST.values(), ids=PAST)
def test_a_read_past_an_input_is_refuted(body: str, tmp_path: Path) -> None:
    kernel = example("vector_add.hip")
    assert SUM in kernel
    path = write_example(tmp_path, kernel=kernel.replace(SUM, body))
    found = run(path, tmp_path / "out", shapes={"n": 100}, profile=["normal"])
    assert found.verdict is Verdict.REFUTED


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_has_its_ends_around_it(dtype: str) -> None:
    values = outside(dtype)
    assert values.dtype == numpy_dtype(dtype)
    found = values.astype(np.float64)
    if dtype in FORMATS:
        assert not np.isfinite(found).any()
    else:
        assert found[0] == (1 if dtype == "bool" else np.iinfo(dtype).max)
