"""An access 2^32 elements from an array is told as an index that wrapped around, and of that array."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.sanitizers import specs
from tests.runs import run
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices.amdgpu import gfx_compiler

OWN = Path(__file__).parent / "wrapped.hip"
ARRAYS = {
    "read_wrapped": "x[4294967293] of 64 elements",
    "write_wrapped": "y[-4294967291] of 64 elements",
}
SIDES = {"read_wrapped": "4 bytes past the end of", "write_wrapped": "4 bytes before"}


@pytest.mark.parametrize("device", ["cpu", "gfx"])
def test_a_wrapped_index_is_told_with_its_array(device: str, tmp_path: Path) -> None:
    if device == "gfx" and gfx_compiler.toolchain() is None:
        pytest.skip(gfx_compiler.missing("")[0])
    spec = specs.write_spec(tmp_path, list(ARRAYS), OWN)
    evidence = run(spec, tmp_path, device=device, watch="full" if device == "cpu" else "off")
    watched = {case.variant: case for case in evidence.watched}
    for case in evidence.cases:
        name, _, wrong = case.variant.rpartition("-")
        seen = watched[case.variant] if device == "cpu" else case
        if wrong == "false":
            assert not seen.findings
            continue
        assert case.verdict in (Verdict.CRASHED, Verdict.REFUTED)
        found = next(one for one in seen.findings if one.kind == "out-of-bounds")
        assert found.array == ARRAYS[name]
        assert f"2^32 elements of {SIDES[name]} an array: a 32-bit index" in found.message
        if device == "cpu":
            array = ARRAYS[name][0]
            assert f"2^32 elements of {SIDES[name]} array `{array}`: a 32-bit index" in case.reason
