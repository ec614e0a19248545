"""Reading of spec files: what is accepted, and each kind of fault of bad_specs.txt is told."""

from __future__ import annotations

import functools
import hashlib
import math
import operator
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import jsonschema
import numpy as np
import pytest
import yaml

from tokitai_cli import spec
from tokitai_cli.core.errors import SpecError, UsageError
from tokitai_cli.core.model import spec as model
from tokitai_cli.core.model.draws import KINDS, SETTINGS, Group
from tokitai_cli.core.model.metrics import METRICS, MetricName
from tokitai_cli.core.model.options import options_of
from tokitai_cli.judge.checks.metric import MEASURES
from tokitai_cli.spec.inputs.floats import FLOAT_KINDS
from tokitai_cli.spec.reader.plain import SurpriseError, plain
from tokitai_cli.spec.reader.rules import RESERVED

FIELDS = {
    field
    for struct in vars(model).values()
    if isinstance(struct, type) and issubclass(struct, model.Strict)
    for field in struct.__struct_encode_fields__
} - {"tree"}  # shown within `reduction`
HERE = Path(__file__).resolve().parents[1]
GOOD = """\
schema: tokitai/spec/v1
op: add-one
title: y = x + 1
params:
  n: {default: 64}
variants:
  main:
    source: kernel.hip
    inputs:
      x: {dtype: float32, shape: [n]}
    outputs:
      y: {dtype: float32, shape: [n]}
    launches:
      - {kernel: add_one, grid: ["ceil_div(n, 64)"], block: [64], args: [x, y, n]}
    oracle: oracle.py:add_one
    checks:
      - {metric: ulp, limit: 1}
profiles:
  normal: {draw: normal}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernel.hip").touch()
    (tmp_path / "oracle.py").touch()
    return tmp_path


def load_text(folder: Path, text: str | bytes, name: str = "spec.yaml") -> Any:
    data = text if isinstance(text, bytes) else text.encode()
    (folder / name).write_bytes(data)
    return spec.load(folder / name)


# ---------------------------------------------------------------- faults


def bad_specs() -> dict[str, tuple[str, str]]:
    """Text and message of each spec in bad_specs.txt, by name."""
    found = {"base": ("", "")}
    for block in (HERE / "bad_specs.txt").read_text(encoding="utf-8").split("\n== ")[1:]:
        name, _, rest = block.partition("\n")
        hunks, _, told = rest.rstrip("\n").partition("! ")
        text = found["base"][0]
        for hunk in hunks.split("\n@\n"):
            lines = hunk.splitlines()
            old, new = ("".join(f"{one[1:]}\n" for one in lines if one[0] == sign) for sign in "-+")
            assert not old or text.count(old) == 1, (name, old)
            text = text.replace(old, new) if old else new
        found[name] = (text, told)
    return found


BAD = bad_specs()


def test_the_base_of_the_bad_specs_is_good(tmp_path: Path) -> None:
    (tmp_path / "kernel.hip").touch()
    (tmp_path / "oracle.py").touch()
    assert load_text(tmp_path, BAD["base"][0]).spec.op == "add-one"


@pytest.mark.parametrize("name", [name for name in BAD if name != "base"])
def test_bad_spec_is_refused_with_place_and_mend(name: str, tmp_path: Path) -> None:
    text, told = BAD[name]
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "kernel.hip").touch()
    (folder / "oracle.py").touch()
    path = folder / "spec.yaml"
    with pytest.raises(SpecError) as caught:
        load_text(folder, text)
    assert str(caught.value).removeprefix(f"{path}:").replace(str(folder), ".") == told
    assert caught.value.exit_code == 2
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("change", "mend"),
    [
        (("dtype: float32", "dtype: fp16"), "did you mean float16?"),
        (("dtype: float32", "dtype: half"), "did you mean float16?"),
        (("dtype: float32", "dtype: bf16"), "did you mean bfloat16?"),
        (("dtype: float32", "dtype: double"), "did you mean float64?"),
        (("draw: normal", "draw: gaussian"), "did you mean normal?"),
        (("draw: normal", "draw: {kind: gauss}"), "did you mean normal?"),
    ],
)
def test_other_names_of_things_are_known(folder: Path, change: tuple[str, str], mend: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_text(folder, GOOD.replace(*change, 1))
    assert caught.value.hint == mend


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("variants.main.profiles", "variants.main.profiles: an empty list"),
        ("variants.main.checks.0.profiles", r"variants.main.checks\[0\].profiles: an empty list"),
        ("suites.quick.0.variants", r"suites.quick\[0\].variants: an empty list"),
        ("suites.quick.0.profiles", r"suites.quick\[0\].profiles: an empty list"),
        ("suites.quick", "suites.quick: a suite without shapes"),
        ("suites", "suites: no suite"),
    ],
)
def test_an_empty_list_is_not_taken_for_everything(folder: Path, key: str, place: str) -> None:
    tree = yaml.safe_load(GOOD) | {"suites": {"quick": [{"shape": {"n": 64}}]}}
    *steps, last = (int(step) if step.isdigit() else step for step in key.split("."))
    functools.reduce(operator.getitem, steps, tree)[last] = {} if key == "suites" else []
    with pytest.raises(SpecError, match=rf"spec\.yaml:\d+:\d+: {place}"):
        load_text(folder, yaml.safe_dump(tree, sort_keys=False))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "spec file is empty"),
        (b"\n\n", "spec file is empty"),
        (b"a: \xff\n", r"spec.yaml:1:4: byte 0xff is not UTF-8 \(save the file as UTF-8\)"),
        (b"a: 1\nb: caf\xe9\n", r"spec.yaml:2:7: byte 0xe9 is not UTF-8"),
        (GOOD.encode("utf-16"), "is not UTF-8"),
        (b"a: 1\nb: \x00\n", r"spec.yaml:2:4: control character U\+0000"),
        (b"\x7fELF\x02\x01", r"control character U\+007F"),
        (b"a" * (10 << 20), r"the spec file is larger than 1 MiB \(a spec is a few kilobytes"),
        (b"[" * 5000, "nested deeper than 32|nesting depth"),
        (b"a: [" + b"1," * 60_000 + b"1]", "more than 50000 values"),
        (b"a: " + b"1" * 10_000, "does not fit 64 bits"),
    ],
)
def test_bytes_that_are_no_spec(folder: Path, data: bytes, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_text(folder, data)


def test_paths_that_are_no_file(folder: Path) -> None:
    with pytest.raises(SpecError, match=r"missing\.yaml: no such spec file"):
        spec.load(folder / "missing.yaml")
    (folder / "own.yaml").touch()
    with pytest.raises(SpecError, match=r"folder, not a spec file .*own\.yaml"):
        spec.load(folder)
    with pytest.raises(SpecError, match="cannot be read"):
        spec.load(folder / "own.yaml" / "deeper.yaml")
    with pytest.raises(SpecError, match="cannot be read"):
        spec.load(folder / "a\0b")
    os.mkfifo(folder / "pipe.yaml")
    with pytest.raises(SpecError, match="cannot be read: it is not a regular file"):
        spec.load(folder / "pipe.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_file(folder: Path) -> None:
    (folder / "own.yaml").touch(mode=0o000)
    with pytest.raises(SpecError, match="cannot be read: Permission denied"):
        spec.load(folder / "own.yaml")


# ---------------------------------------------------------------- YAML as a person means it


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-2", 0.01),
        ("1e5", 100000.0),
        ("1E+5", 100000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0.25", -0.25),
        ("16", 16),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("0x1F", 31),
        ("0o17", 15),
        ("0b101", 5),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("on", "on"),
        ("y", "y"),
        ("null", None),
        ("~", None),
        ("", None),
        ("inf", "inf"),
        ("nan", "nan"),
        ("-n", "-n"),
        ("2*n", "2*n"),
        ("1.2.3", "1.2.3"),
        ("--", "--"),
        ("1e", "1e"),
        ("16 - 1", "16 - 1"),
    ],
)
def test_plain_scalars(text: str, value: Any) -> None:
    result = plain(text)
    assert result == value
    assert type(result) is type(value)


def test_plain_nan() -> None:
    result = plain(".nan")
    assert isinstance(result, float)
    assert math.isnan(result)


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("010", "write 10"),
        ("-08", "write -8"),
        ("00", "write 0"),
        ("1:30", "in full"),
        ("1:30.5", "in full"),
        ("1_000", "write 1000"),
        ("1_0.5", "write 10.5"),
        ("0x_ff", "write 0xff"),
        ("2024-01-31", "quotes"),
        ("2024-01-31 10:00:00", "quotes"),
        ("1e999", "infinity"),
        ("18446744073709551616", "smaller"),
        ("-9223372036854775809", "smaller"),
    ],
)
def test_surprising_scalars(text: str, mend: str) -> None:
    with pytest.raises(SurpriseError) as caught:
        plain(text)
    assert mend in caught.value.hint


def test_limits_are_read_as_meant(folder: Path) -> None:
    loaded = load_text(folder, GOOD.replace("limit: 1}", "limit: 1e-2}"))
    assert loaded.spec.variants["main"].checks[0].limit == 0.01


def test_quoted_and_block_scalars_are_text(folder: Path) -> None:
    text = GOOD.replace("title: y = x + 1", "title: '010'\nsummary: >-\n  1:30\n  no")
    loaded = load_text(folder, text)
    assert (loaded.spec.title, loaded.spec.summary) == ("010", "1:30 no")


def test_numbers_without_a_suffix_serve_as_floats(folder: Path) -> None:
    scalars = (
        "    scalars:\n      a: {dtype: float32, value: 2}\n      b: {dtype: bool, value: true}\n"
    )
    text = GOOD.replace("    launches", scalars + "    launches").replace("y, n]", "y, n, a, b]")
    variant = load_text(folder, text).spec.variants["main"]
    assert (variant.scalars["a"].value, variant.scalars["b"].value) == (2, True)


# ---------------------------------------------------------------- what is accepted


def test_loaded_spec_knows_where_it_came_from(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "spec.yaml").write_text(GOOD, encoding="utf-8")
    monkeypatch.chdir(folder)
    loaded = spec.load(Path("spec.yaml"))
    assert loaded.path == folder / "spec.yaml"
    assert loaded.folder == folder
    assert loaded.text == GOOD
    assert loaded.digest == hashlib.sha256(GOOD.encode()).hexdigest()
    assert loaded.spec.params["n"].min == 1
    assert loaded.spec.variants["main"].deterministic


def test_byte_order_mark_and_windows_line_ends(folder: Path) -> None:
    data = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    assert load_text(folder, data).spec.op == "add-one"


def test_any_locale_and_any_folder_name(tmp_path: Path) -> None:
    folder = tmp_path / "my kernels (v2) é"
    folder.mkdir()
    (folder / "kernel.hip").touch()
    (folder / "oracle.py").touch()
    text = GOOD.replace("title: y = x + 1", "title: y ≤ x — one")
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    code = (
        "import pathlib, sys; from tokitai_cli import spec;"
        "print(ascii(spec.load(next(pathlib.Path(sys.argv[1]).glob('my*/spec.yaml'))).spec.title))"
    )
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=environment,
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ascii("y ≤ x — one")


def test_bad_spec_far_from_utf8_locale_is_still_a_clear_error(folder: Path) -> None:
    with pytest.raises(SpecError, match="'größe' is not allowed as a name here"):
        load_text(folder, GOOD.replace("  n: {default", "  größe: {default"))


@pytest.mark.parametrize(
    "kernel", ["add_one", "ns::add", "sum<float, 256>", "f<ns::t<int>, unsigned int*, -1>"]
)
def test_kernel_names(folder: Path, kernel: str) -> None:
    text = GOOD.replace("kernel: add_one,", f'kernel: "{kernel}",')
    assert load_text(folder, text).spec.variants["main"].launches[0].kernel == kernel


@pytest.mark.parametrize(
    "kernel", ["1add", "a b", "f<", "f<>>", "f<int>()", "f;g", "f\n", "a::", "f<'x'>", "é"]
)
def test_what_names_no_kernel(folder: Path, kernel: str) -> None:
    quoted = kernel.replace("\n", "\\n")
    with pytest.raises(SpecError, match=r"launches\[0\]\.kernel: .* names no kernel"):
        load_text(folder, GOOD.replace("kernel: add_one,", f'kernel: "{quoted}",'))


@pytest.mark.parametrize("place", ["op: add-one", "  n: {", "      x: {", "  main:"])
def test_no_name_ends_in_a_line_break(folder: Path, place: str) -> None:
    key, rest = place.rstrip(" {:"), place[len(place.rstrip(" {:")) :]
    if place.startswith("op"):
        bad = 'op: "add-one\\n"'
    else:
        indent = key[: len(key) - len(key.lstrip())]
        bad = f'{indent}"{key.strip()}\\n"{rest}'
    with pytest.raises(SpecError, match="line"):
        load_text(folder, GOOD.replace(place, bad, 1))


def test_empty_suite_shapes_may_go_below_min_and_are_marked(folder: Path) -> None:
    text = GOOD + "suites:\n  quick:\n    - {shape: {n: 0}, expect: empty}\n"
    assert load_text(folder, text).spec.suites["quick"][0].expect == "empty"
    with pytest.raises(SpecError, match="below its min"):
        load_text(folder, text.replace("n: 0", "n: -1"))


@pytest.mark.parametrize(
    ("name", "constant", "message"),
    [
        ("x", "{value: 0}", "inputs.x.constant: only outputs and inout have `constant`"),
        ("y", "{value: true}", "constant.value: true for an output of float32"),
        ("y", "{value: .inf}", "constant.value: inf is not a constant"),
        ("y", '{value: 0, when: "m == 1"}', "constant.when: unknown name `m`"),
        ("y", '{value: 0, when: "n"}', "constant.when: `n` is not a comparison"),
    ],
)
def test_constants_that_cannot_be_meant(
    folder: Path, name: str, constant: str, message: str
) -> None:
    plain = f"      {name}: {{dtype: float32, shape: [n]"
    with pytest.raises(SpecError, match=re.escape(message)):
        load_text(folder, GOOD.replace(plain, f"{plain}, constant: {constant}"))


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("{metric: allclose, abs: 1e-3}", "`allclose` needs `rel`"),
        ("{metric: allclose, abs: 1e-3, rel: 1e-2, limit: 2}", "limit: `allclose` has no limit"),
        ("{metric: allclose, abs: -1, rel: 1e-2}", "abs: -1.0 is not a limit"),
        ("{metric: abs, abs: 1e-3}", "abs: `abs` has no `abs`"),
    ],
)
def test_tolerances_that_cannot_be_meant(folder: Path, check: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        load_text(folder, GOOD.replace("{metric: ulp, limit: 1}", check))


def test_profile_named_after_a_generator_needs_no_draw(folder: Path) -> None:
    loaded = load_text(folder, GOOD.replace("{draw: normal}", "{}"))
    assert loaded.spec.profiles["normal"].draw is None


def test_variant_with_profiles_of_its_own_is_judged_on_those(folder: Path) -> None:
    text = GOOD.replace("{metric: ulp, limit: 1}", "{metric: ulp, profiles: [normal]}")
    text += "  large: {draw: large}\n"
    with pytest.raises(SpecError, match="no check judges output `y` on profile `large`"):
        load_text(folder, text)
    text = text.replace("    oracle:", "    profiles: [normal]\n    oracle:")
    assert load_text(folder, text).spec.variants["main"].profiles == ["normal"]


# ---------------------------------------------------------------- built-in ops and the schema


def test_builtin_ops_are_sorted_and_named_after_their_files() -> None:
    ops = spec.builtin()
    assert ops == sorted(ops)
    assert "gemm-bw" in dict(ops)
    for name, path in ops:
        assert spec.load(path).spec.op == name


def test_find(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "gemm-bw").touch()
    (folder / "mine").touch()
    assert spec.find("gemm-bw") == dict(spec.builtin())["gemm-bw"]
    assert spec.find("./gemm-bw") == Path("gemm-bw")
    assert spec.find("missing.yaml") == Path("missing.yaml")
    assert spec.find("a/b") == Path("a/b")
    assert spec.find("mine") == Path("mine")
    with pytest.raises(UsageError, match=r"unknown op `gem-bw` .*did you mean gemm-bw"):
        spec.find("gem-bw")
    with pytest.raises(UsageError, match="unknown op ``"):
        spec.find("")


def test_every_shipped_spec_is_valid_by_the_json_schema() -> None:
    schema = spec.spec_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for _, path in spec.builtin():
        validator.validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    broken = yaml.safe_load(GOOD)
    broken["variants"]["main"]["checks"][0]["tolerance"] = 1
    with pytest.raises(jsonschema.ValidationError, match="tolerance"):
        validator.validate(broken)


def test_generators_are_those_of_the_inputs() -> None:
    numbers = {name for name, kind in KINDS.items() if kind.group is Group.NUMBERS}
    assert numbers == set(FLOAT_KINDS)
    assert {name for kind in KINDS.values() for name in kind.settings} == set(SETTINGS)


def test_options_of_verify_are_reserved() -> None:
    assert {*options_of("verify"), *options_of("sanitize"), "op", "help"} <= RESERVED


def test_no_param_of_a_shipped_spec_is_reserved() -> None:
    for _, path in spec.builtin():
        assert not RESERVED & set(spec.load(path).spec.params)


# ---------------------------------------------------------------- docs/spec.md


def example() -> dict[str, str]:
    """Files of the example in docs/spec.md, by name."""
    text = (HERE.parent / "docs" / "spec.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


def test_documented_example_is_a_spec(tmp_path: Path) -> None:
    files = example()
    assert set(files) == {"spec.yaml", "vector_add.hip", "oracle.py"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    loaded = spec.load(tmp_path / "spec.yaml")
    assert loaded.spec.op == "vector-add"
    schema = jsonschema.Draft202012Validator(spec.spec_schema())
    schema.validate(yaml.safe_load(files["spec.yaml"]))
    space: dict[str, Any] = {}
    exec(files["oracle.py"], space)
    a = np.array([1, np.inf, 2.0**-140], dtype=np.float32)
    b = np.array([2.0**-30, -np.inf, 1], dtype=np.float32)
    c = space["vector_add"]({"n": 3}, {"a": a, "b": b}, {})["c"]
    assert c["reference"].dtype == np.float64
    assert c["reference"][0] == 1 + 2.0**-30
    assert np.isnan(c["reference"][1])
    assert abs(float(a[2] + b[2]) - c["reference"][2]) <= c["error"][2]


@pytest.mark.parametrize("word", sorted({*KINDS, *METRICS, *FIELDS}))
def test_documentation_names_everything(word: str) -> None:
    docs = HERE.parent / "docs"
    pages = [docs / "spec.md", *(docs / "spec").glob("*.md")]
    assert any(f"`{word}`" in page.read_text(encoding="utf-8") for page in pages)


def test_the_metrics_that_a_spec_may_name_are_those_of_the_tables() -> None:
    assert get_args(MetricName) == tuple(METRICS) == tuple(MEASURES)


# ---------------------------------------------------------------- gemm-bw


def test_gemm_bw_is_the_op_that_its_contract_describes() -> None:
    loaded = spec.load(spec.find("gemm-bw"))
    grad_a, grad_b = loaded.spec.variants["grad-a"], loaded.spec.variants["grad-b"]
    assert grad_a.lowering == "hip.gemm_bw.grad_a.fp16_f32"
    assert grad_b.lowering == "hip.gemm_bw.grad_b.fp16_f32"
    assert grad_a.backend == "rocm_hip_gemm_bw_grad_a_pilot"
    assert grad_b.backend == "rocm_hip_gemm_bw_grad_b_pilot"
    assert grad_a.launches[0].args == ["grad_c", "b", "grad_a", "m", "n", "k"]
    assert grad_b.launches[0].args == ["grad_c", "a", "grad_b", "m", "n", "k"]
    assert list(loaded.spec.profiles) == [
        "normal",
        "uniform",
        "log-uniform",
        "exact-int",
        "exact-int-ramp",
        "cancelling",
        "large",
        "subnormal",
        "special",
        "constant",
    ]
    assert set(loaded.spec.suites) == {"quick", "full", "stress"}
    assert all(shape.why for shapes in loaded.spec.suites.values() for shape in shapes)
    claims = [*loaded.spec.non_claims, *grad_a.non_claims, *grad_b.non_claims]
    for words in ("production speedup", "shared-memory tiling", "autograd engine"):
        assert any(words in claim for claim in claims)
