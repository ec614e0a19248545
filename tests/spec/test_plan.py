"""Selections to cases: crossing, what is refused, what is left out, and the numbers filled in."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokitai_cli import spec
from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.errors import SpecError, UsageError
from tokitai_cli.core.model.case import BufferArg, LoadedSpec, ScalarValue
from tokitai_cli.core.numerics import round_to
from tokitai_cli.spec.plan import Selection, expand_values, memory_bytes, oversize, plan
from tokitai_cli.spec.plan.scalar_bytes import pack

TEXT = """\
schema: tokitai/spec/v1
op: scale
title: y = a x
params:
  rows: {default: 8, max: 100000000000}
  cols: {default: 64, multiple_of: 4, max: 1024}
variants:
  wide:
    source: kernel.hip
    requires: ["cols % 16 == 0"]
    inputs:
      x: {dtype: float16, shape: [rows, cols]}
    outputs:
      y: {dtype: float32, shape: [rows, cols]}
      total: {dtype: float32, shape: [1], init: zero}
    inout:
      seen: {dtype: int32, shape: [rows]}
    workspaces:
      partial: {dtype: float32, shape: ["ceil_div(rows, 2)"]}
    symbols:
      table: {dtype: float32, shape: [4]}
    scalars:
      a: {dtype: float16, value: 0.1}
      half: {dtype: uint8, value: cols // 2}
    launches:
      - kernel: scale
        grid: [rows, cols // 16]
        block: [16]
        shared: 4 * cols
        args: [x, y, seen, partial, a, half, rows, rows * cols, 7]
      - {kernel: finish, grid: [1], block: [32, 2, 4], args: [partial, total]}
    oracle: oracle.py:scale
    checks:
      - {metric: ulp, output: y}
      - {metric: ulp, output: total}
      - {metric: exact, output: seen}
  any:
    source: kernel.hip
    inputs:
      x: {dtype: float16, shape: [rows, cols]}
    outputs:
      y: {dtype: float16, shape: [rows, cols]}
    launches:
      - {kernel: plain, grid: [rows], block: [cols], args: [x, y]}
    oracle: oracle.py:scale
    profiles: [normal, constant]
    checks:
      - {metric: ulp}
profiles:
  normal: {}
  uniform: {}
  constant: {}
suites:
  quick:
    - {shape: {cols: 16}}
    - {shape: {cols: 20}, why: wide cannot}
    - {shape: {rows: 3}, variants: [any], profiles: [constant]}
    - {shape: {rows: 0}, expect: empty}
    - {shape: {cols: 16}, why: given twice}
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedSpec:
    folder = tmp_path_factory.mktemp("scale")
    return write(folder, TEXT)


def write(folder: Path, text: str) -> LoadedSpec:
    (folder / "kernel.hip").touch()
    (folder / "oracle.py").touch()
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    return spec.load(folder / "spec.yaml")


def ids(loaded: LoadedSpec, selection: Selection) -> list[str]:
    return [case.id.removeprefix("scale/") for case in plan(loaded, selection).cases]


# ---------------------------------------------------------------- crossing


def test_everything_is_the_default(loaded: LoadedSpec) -> None:
    assert ids(loaded, Selection()) == [
        "wide/rows=8,cols=64/normal/0",
        "wide/rows=8,cols=64/uniform/0",
        "wide/rows=8,cols=64/constant/0",
        "any/rows=8,cols=64/normal/0",
        "any/rows=8,cols=64/constant/0",
    ]
    assert plan(loaded, Selection()).left_out == ()


def test_lists_are_crossed_in_order_and_repeats_dropped(loaded: LoadedSpec) -> None:
    selection = Selection(
        shapes={"cols": (32, 16), "rows": (1, 2, 1)},
        variants=("wide", "wide"),
        profiles=("constant",),
        seeds=(5, 3, 5),
    )
    assert ids(loaded, selection) == [
        f"wide/rows={rows},cols={cols}/constant/{seed}"
        for rows in (1, 2)
        for cols in (32, 16)
        for seed in (5, 3)
    ]


def test_a_list_leaves_out_what_a_variant_cannot_take(loaded: LoadedSpec) -> None:
    result = plan(loaded, Selection(shapes={"cols": (16, 20, 18)}, profiles=("normal",)))
    assert [(case.variant_name, case.shape["cols"]) for case in result.cases] == [
        ("wide", 16),
        ("any", 16),
        ("any", 20),
    ]
    assert [(out.variant, out.shape, out.requirement) for out in result.left_out] == [
        ("wide", {"rows": 8, "cols": 20}, "cols % 16 == 0"),
        ("wide", {"rows": 8, "cols": 18}, "cols % 4 == 0"),
        ("any", {"rows": 8, "cols": 18}, "cols % 4 == 0"),
    ]


def test_suite_gives_shapes_variants_and_profiles(loaded: LoadedSpec) -> None:
    result = plan(loaded, Selection(suite="quick", profiles=("constant",)))
    assert [case.id.removeprefix("scale/") for case in result.cases] == [
        "wide/rows=8,cols=16/constant/0",
        "wide/rows=0,cols=64/constant/0",
        "any/rows=8,cols=16/constant/0",
        "any/rows=8,cols=20/constant/0",
        "any/rows=3,cols=64/constant/0",
        "any/rows=0,cols=64/constant/0",
    ]
    assert [case.expect_empty for case in result.cases] == [False, True, False, False, False, True]
    assert [out.shape["cols"] for out in result.left_out] == [20]


def test_empty_case_makes_only_launches_that_have_threads(loaded: LoadedSpec) -> None:
    cases = plan(loaded, Selection(suite="quick", profiles=("normal",))).cases
    empty = {case.variant_name: case for case in cases if case.expect_empty}
    assert [launch.kernel for launch in empty["wide"].launches] == ["finish"]
    assert [launch.index for launch in empty["wide"].launches] == [1]
    assert empty["any"].launches == ()
    assert empty["any"].buffers[0].elements == 0


def test_profile_that_a_variant_does_not_run_is_left_out(loaded: LoadedSpec) -> None:
    result = plan(loaded, Selection(profiles=("uniform",)))
    assert {case.variant_name for case in result.cases} == {"wide"}
    assert [(out.variant, out.requirement) for out in result.left_out] == [
        ("any", "profile in normal, constant")
    ]
    with pytest.raises(UsageError, match="nothing to run: any requires profile in normal"):
        plan(loaded, Selection(profiles=("uniform",), variants=("any",)))


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(variants=("wde",)), r"--variant wde: unknown variant \(did you mean wide"),
        (Selection(profiles=("norml",)), r"--profile norml: .*did you mean normal"),
        (Selection(suite="quik"), r"--suite quik: unknown suite \(did you mean quick"),
        (Selection(suite="quick", shapes={"rows": (1,)}), r"already gives the shapes of --rows"),
        (Selection(shapes={"row": (1,)}), r"scale has no param row \(did you mean rows"),
        (Selection(shapes={"rows": ()}), r"--rows: no value"),
        (Selection(shapes={"rows": (0,)}), r"--rows 0: below the min 1 .*smallest is 1"),
        (Selection(shapes={"cols": (-4,)}), r"--cols -4: below the min 1 .*smallest is 4"),
        (Selection(shapes={"cols": (16, 2000)}), r"--cols 2000: above .*largest is 1024"),
        (
            Selection(shapes={"cols": (20,)}),
            r"--cols 20: wide requires cols % 16 == 0 \(nearest cols: 16 or 32; "
            r"--variant any limits",
        ),
        (
            Selection(shapes={"cols": (20,)}, variants=("wide",)),
            r"--cols 20: wide requires cols % 16 == 0 \(nearest cols: 16 or 32\)$",
        ),
        (
            Selection(shapes={"cols": (18,)}, variants=("any",)),
            r"--cols 18: any requires cols % 4 == 0 \(nearest cols: 16 or 20\)$",
        ),
        (Selection(shapes={"cols": (1024 - 4,)}), r"nearest cols: 1008 or 1024"),
        (Selection(shapes={"cols": (20, 24)}), r"--cols 20: wide requires"),
        (Selection(shapes={"rows": tuple(range(1, 50_001))}), r"300000 combinations"),
        (
            Selection(shapes={"rows": tuple(range(1, 1001)), "cols": tuple(range(4, 1025, 4))}),
            r"256000 combinations",
        ),
    ],
)
def test_refused_selections(loaded: LoadedSpec, selection: Selection, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        plan(loaded, selection)
    assert caught.value.exit_code == 2


def test_variant_that_cannot_take_the_defaults_is_left_out(tmp_path: Path) -> None:
    loaded = write(tmp_path, TEXT.replace("cols % 16 == 0", "rows > 100"))
    result = plan(loaded, Selection(profiles=("normal",)))
    assert [case.variant_name for case in result.cases] == ["any"]
    assert [out.requirement for out in result.left_out] == ["rows > 100"]
    with pytest.raises(UsageError, match=r"--rows 8: wide requires rows > 100 .*nearest rows: 101"):
        plan(loaded, Selection(variants=("wide",)))


def test_how_many_threads_a_block_may_have_is_the_devices_to_say(tmp_path: Path) -> None:
    loaded = write(tmp_path, TEXT.replace("[32, 2, 4]", "[32, 8, 8]", 1))
    blocks = {one.block for case in plan(loaded, Selection()).cases for one in case.launches}
    assert (32, 8, 8) in blocks


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("grid: [rows, ", "grid: [rows - 8, ", "wide.launches[0].grid[0]", "grid extent of 0"),
        ("block: [16]", "block: [0]", "wide.launches[0].block[0]", "0 is not in 1 to 4294967295"),
        ("shared: 4 *", "shared: -4 *", "wide.launches[0].shared", "-256 bytes"),
        ("shape: [1]", "shape: [rows - 9]", "wide.outputs.total.shape[0]", "extent of -1"),
        ("cols // 2", "cols * 4", "wide.scalars.half.value", "256 does not fit uint8"),
        ("cols // 2", "cols // (rows - 8)", "wide.scalars.half.value", "division by zero"),
        ("cols % 16 ==", "cols % (rows - 8) ==", "wide.requires[0]", "division by zero"),
    ],
)  # fmt: skip
def test_numbers_that_no_launch_can_have(
    tmp_path: Path, old: str, new: str, key: str, message: str
) -> None:
    # The suite would meet the same faults, and earlier.
    loaded = write(tmp_path, TEXT.replace(old, new, 1).split("suites:")[0])
    with pytest.raises(SpecError, match=message) as caught:
        plan(loaded, Selection())
    assert caught.value.where is not None
    assert caught.value.where.key == f"variants.{key}"
    assert caught.value.where.file == loaded.path
    assert "rows = 8" in caught.value.message


def test_a_grid_beyond_the_limit_is_told_by_its_launch(loaded: LoadedSpec) -> None:
    large = plan(loaded, Selection(shapes={"rows": (10**10,)})).cases
    words = "launch 0 (scale) has 10000000000 blocks along x, and a grid has at most 2147483647"
    assert oversize(large[0]) == words
    assert [oversize(case) for case in plan(loaded, Selection()).cases] == [""] * 5


# ---------------------------------------------------------------- numbers


def test_buffers_and_launches_of_a_case(loaded: LoadedSpec) -> None:
    case = plan(loaded, Selection()).cases[0]
    assert [(b.name, b.role, b.dtype, b.shape, b.init) for b in case.buffers] == [
        ("x", "input", "float16", (8, 64), "sentinel"),
        ("y", "output", "float32", (8, 64), "sentinel"),
        ("total", "output", "float32", (1,), "zero"),
        ("seen", "inout", "int32", (8,), "sentinel"),
        ("partial", "workspace", "float32", (4,), "sentinel"),
        ("table", "symbol", "float32", (4,), "sentinel"),
    ]
    first, second = case.launches
    assert (first.index, first.kernel, first.shared_bytes) == (0, "scale", 256)
    assert (first.grid, first.block) == ((8, 4, 1), (16, 1, 1))
    assert first.args[:4] == tuple(map(BufferArg, ("x", "y", "seen", "partial")))
    assert first.args[4:] == (
        ScalarValue("a", "float16", struct.pack("<e", 0.1), "0.0999755859375"),
        ScalarValue("half", "uint8", b"\x20", "32"),
        ScalarValue("rows", "", (8).to_bytes(8, "little"), "8"),
        ScalarValue("rows * cols", "", (512).to_bytes(8, "little"), "512"),
        ScalarValue("7", "", (7).to_bytes(8, "little"), "7"),
    )
    assert (second.index, second.grid, second.block) == (1, (1, 1, 1), (32, 2, 4))
    assert second.args == (BufferArg("partial"), BufferArg("total"))


@pytest.mark.parametrize("dtype", [name for name in DTYPES if not DTYPES[name].extension])
def test_pack_agrees_with_numpy(dtype: str) -> None:
    for value in (0, 1, True) if dtype == "bool" else (0, 1, 100):
        bits, _ = pack(value, dtype)
        assert bits == np.array(value, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name.startswith("float8")])
@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -100.0, 2.0**-9, math.nan])
def test_pack_of_8_bits_agrees_with_its_rounding(value: float, dtype: str) -> None:
    assert pack(value, dtype)[0] == round_to(np.array([value]), dtype).tobytes()


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_pack_rounds_to_bfloat16_once(value: float) -> None:
    want = round_to(np.array([value]), "bfloat16")
    if math.isinf(float(want[0])):
        with pytest.raises(SpecError, match="does not fit bfloat16"):
            pack(value, "bfloat16")
    else:
        assert pack(value, "bfloat16")[0] == want.tobytes()


def test_pack_keeps_special_values() -> None:
    assert pack(-math.inf, "bfloat16") == (b"\x80\xff", "-inf")
    assert pack(math.inf, "float16") == (b"\x00\x7c", "inf")
    assert pack(math.nan, "float32")[1] == "nan"
    assert pack(-0.0, "bfloat16") == (b"\x00\x80", "-0.0")
    assert pack(False, "bool") == (b"\x00", "false")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (256, "uint8"), (-1, "uint64"), (2**63, "int64"), (128, "int8"), (1.5, "int32"),
        (math.inf, "int32"), (math.nan, "int32"), (65520, "float16"), (1e39, "float32"),
        (3.4e38, "bfloat16"), (2**53 + 1, "float64"),
    ],
)  # fmt: skip
def test_pack_refuses_what_does_not_fit(value: float, dtype: str) -> None:
    with pytest.raises(SpecError):
        pack(value, dtype)


def test_memory_is_counted_region_by_region(loaded: LoadedSpec) -> None:
    case = plan(loaded, Selection(variants=("any",))).cases[0]
    page, elements = 4096, 8 * 64
    region = 3 * page  # 1 KiB of float16 in one page, between two guard pages
    oracle = 8 * elements + 4 * 8 * elements
    assert memory_bytes(case, 2) == region + 2 * region + 2 * elements + oracle
    assert memory_bytes(case, 3) - memory_bytes(case, 2) == region


def test_memory_of_a_large_product_stays_below_twelve_times_its_arrays() -> None:
    loaded = spec.load(spec.find("gemm-bw"))
    sizes = dict.fromkeys("mnk", (4096,))
    case = plan(loaded, Selection(shapes=sizes, variants=("grad-a",))).cases[0]
    arrays = sum(buffer.nbytes for buffer in case.buffers)
    assert arrays == 3 * 2 * 4096**2
    assert 4 * arrays < memory_bytes(case, 2) < 12 * arrays


def test_every_suite_of_gemm_bw_has_cases_for_every_variant() -> None:
    loaded = spec.load(spec.find("gemm-bw"))
    for suite in loaded.spec.suites:
        result = plan(loaded, Selection(suite=suite))
        every = {"grad-a", "grad-b", "grad-a-bf16", "grad-b-bf16"}
        assert {case.variant_name for case in result.cases} == every
        assert {out.variant for out in result.left_out} == every


# ---------------------------------------------------------------- lists of values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("7", (7,)),
        ("-7", (-7,)),
        ("16,64", (16, 64)),
        (" 64, 16 ,64", (64, 16)),
        ("64:256:64", (64, 128, 192, 256)),
        ("64:250:64", (64, 128, 192)),
        ("3:5", (3, 4, 5)),
        ("5:5", (5,)),
        ("1,4:6,16", (1, 4, 5, 6, 16)),
    ],
)
def test_expand_values(text: str, values: tuple[int, ...]) -> None:
    assert expand_values("m", text) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a value is missing"),
        ("1,,2", "a value is missing"),
        ("x", "`x` is not an integer"),
        ("1.5", "`1.5` is not an integer"),
        ("1e3", "`1e3` is not an integer"),
        ("1_0", "`1_0` is not an integer"),
        ("٣", "is not an integer"),
        ("1:2:3:4", "is not an integer"),
        ("1::2", "is not an integer"),
        ("9" * 30, r"2\^63 or more"),
        ("1:10:0", "step 0 is not positive"),
        ("1:10:-1", "step -1 is not positive"),
        ("10:1", "stop 1 is below start 10"),
        ("1:1000000000000000000", "more than 10000 values"),
        (",".join(f"{9000 * i}:{9000 * i + 8999}" for i in range(2)), "more than 10000 values"),
    ],
)
def test_what_are_no_values(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        expand_values("warp_size", text)
    assert caught.value.message.startswith("--warp-size ")
