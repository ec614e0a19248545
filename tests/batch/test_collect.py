"""What a batch selects: files, names, filters, keywords, shards and fingerprints."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokitai_cli.batch.select.fingerprint as prints
from tests.spec_example import example, write_example
from tokitai_cli import spec
from tokitai_cli.batch.index.index_files import read_index
from tokitai_cli.batch.select.batch_options import batch_options
from tokitai_cli.batch.select.collect import collect
from tokitai_cli.batch.select.collected import BatchCase, Collected, shard
from tokitai_cli.batch.select.fingerprint import fingerprint, tool_digest
from tokitai_cli.cli.app import run
from tokitai_cli.core import resources
from tokitai_cli.core.case_filter import MAX_DEPTH, matcher
from tokitai_cli.core.errors import SpecError, UsageError
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import DeviceOptions, Probe
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.spec import Variant
from tokitai_cli.devices.rocm import RocmDevice
from tokitai_cli.oracles import references
from tokitai_cli.spec import plan

SPEC = example("spec.yaml")


def gather(*folders: Path | str, **options: Any) -> Collected:
    options.setdefault("device", "cpu")
    return collect(batch_options(folders, **options))


def ids(collected: Collected) -> list[str]:
    return [case.id for case in collected.cases]


def changed(text: str = SPEC, **words: str) -> str:
    """The example's text with `key: value` lines at its top level set anew."""
    for key, value in words.items():
        text, count = re.subn(rf"(?m)^{key}: .*$", f"{key}: {value}", text)
        assert count == 1
    return text


# Options.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeat": 1}, "--repeat 1"),
        ({"timeout": 0.0}, "--timeout 0"),
        ({"warp_size": 16}, "--warp-size 16"),
        ({"out": ""}, "--out"),
        ({"keyword": ""}, "--keyword: an empty value"),
        ({"variant": ["a,"]}, "--variant: an empty value"),
        ({"variant": " "}, "--variant: an empty value"),
        ({"json": True}, "batch has no option --json"),
        ({"profil": ["a"]}, "batch has no option --profil .did you mean profile"),
        ({"format": ["mdd"]}, "--format mdd: unknown .*did you mean md"),
        ({"warmup": -1}, "--warmup -1: at least 0"),
        ({"jobs": 0}, "--jobs 0: at least 1"),
        ({"jobs": 5000}, "--jobs 5000: at most"),
        ({"gpu_children": 0}, "--gpu-children 0: at least 1"),
        ({"gpu": "0,-1"}, "--gpu -1: at least 0"),
        ({"gpu": ()}, "--gpu: no value given"),
        ({"seed": "-1"}, "--seed -1: at least 0"),
        ({"seed": "x"}, "--seed x: `x` is not an integer"),
        ({"max_failures": 0}, "--max-failures 0: at least 1"),
        ({"max_failures": 3, "fail_fast": True}, "give one of the two"),
        ({"device": "cpuu"}, "unknown device: 'cpuu' .did you mean cpu"),
        ({"keyword": "a and"}, "-k 'a and': cannot be read at position"),
        ({"shard": "0/2"}, "--shard 0/2: .*2/4 is part 2 of 4"),
        ({"shard": "3/2"}, "--shard 3/2"),
        ({"shard": "1"}, "--shard 1"),
        ({"shard": "1/2 "}, "--shard 1/2 "),
    ],
    ids=str,
)
def test_an_option_that_cannot_be_is_an_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        batch_options(["specs"], **options)
    assert re.search(message, str(caught.value))


@pytest.mark.parametrize("folders", [(), ("",)])
def test_a_batch_needs_a_folder(folders: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="no folder"):
        batch_options(folders)


def test_repeated_options_and_lists_are_one(tmp_path: Path) -> None:
    options = batch_options(
        ["a", Path("b")],
        suite=["quick,full", "quick"],
        op=["x", "y"],
        variant=["u, v"],
        profile=("p",),
        seed="1,3:4,1",
        gpu="0,2",
        shard="2/3",
        fail_fast=True,
        save_arrays=True,
        out=tmp_path / "out",
        format=["md,md"],
    )
    assert options.folders == (Path("a"), Path("b"))
    assert (options.suites, options.ops) == (("quick", "full"), ("x", "y"))
    assert (options.variants, options.profiles) == (("u", "v"), ("p",))
    assert (options.seeds, options.gpus, options.shard) == ((1, 3, 4), (0, 2), (2, 3))
    assert (options.max_failures, options.formats) == (1, ("md",))
    assert (options.settings.gpu, options.save_arrays) == (0, True)


def test_cores_are_shared_out_among_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    shared = [batch_options(["."], jobs=jobs) for jobs in (None, 1, 4, 9)]
    assert [(one.jobs, one.settings.threads) for one in shared] == [
        (6, 1),
        (1, 6),
        (4, 1),
        (9, 1),
    ]


# Files.


def test_specs_are_found_under_folders_once_and_in_order(tmp_path: Path) -> None:
    write_example(tmp_path / "b" / "deep", spec=changed(op="deep"))
    write_example(tmp_path / "a", spec=changed(op="first"))
    write_example(tmp_path / ".hidden", spec=changed(op="hidden"))
    (tmp_path / "b" / "deep" / "spec.yaml").rename(tmp_path / "b" / "deep" / "other.yml")
    (tmp_path / "b" / "deep" / "loop").symlink_to(tmp_path)
    (tmp_path / "c.yaml").symlink_to(tmp_path / "a" / "spec.yaml")
    found = gather(tmp_path / "a" / "spec.yaml", tmp_path, tmp_path / "b")
    assert [one.entry.op for one in found.specs] == ["first", "deep"]
    assert len(set(ids(found))) == len(found.cases)
    assert found.skipped == ()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("schema: tokitai/spec/v1\n", True),
        ("schema: tokitai/spce/v1\n", True),
        ("op: x\n# later\nschema: 'tokitai/spec/v9'\n", True),
        ('{"op": "x", "schema": "tokitai/spec/v1"}', True),
        ("  op: [1, {a: b}]\n  schema:\n    tokitai/spec/v1\n", True),
        ("op: [1\nschema: tokitai/spec/v1\n", True),
        ("op: \xff\nschema: tokitai/spec/v1\n", True),
        ("name: workflow\n", False),
        ("text: tokitai/spec/v1\n", False),
        ("text: |\n  schema: tokitai/spec/v1\n", False),
        ("inner:\n  schema: tokitai/spec/v1\n", False),
        ("- schema: tokitai/spec/v1\n", False),
        ("a: [schema, tokitai/spec/v1]\n", False),
        ("? [schema]\n: tokitai/spec/v1\n", False),
        ("schema: [tokitai/spec/v1]\n", False),
        ("", False),
    ],
)
def test_a_spec_is_told_from_other_yaml(tmp_path: Path, text: str, is_one: bool) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(text.encode("latin-1"))
    assert spec.is_spec(path) is is_one


def test_other_yaml_files_are_skipped_under_a_folder_and_errors_by_name(tmp_path: Path) -> None:
    write_example(tmp_path)
    other = tmp_path / "ci.yaml"
    other.write_text("on: push\n")
    (tmp_path / "gone.yml").symlink_to(tmp_path / "nowhere.yml")
    (tmp_path / "long.yml").symlink_to("a" * 300)  # what cannot even be looked at
    found = gather(tmp_path)
    assert [one.entry.op for one in found.specs] == ["vector-add"]
    assert sorted(found.skipped) == [
        f"{other}: no spec",
        f"{tmp_path / 'gone.yml'}: no regular file",
        f"{tmp_path / 'long.yml'}: no regular file",
    ]
    for order in ([tmp_path, other], [other, tmp_path]):
        (fault,) = gather(*order).faults
        assert "is this a spec" in str(fault)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none: no such folder or file"):
        gather(tmp_path, tmp_path / "none")
    with pytest.raises(UsageError, match="null byte"):
        gather("a\0b")


def test_results_of_batches_are_not_searched(tmp_path: Path) -> None:
    write_example(tmp_path)
    for results in ("out", "earlier"):
        (tmp_path / results / "specs").mkdir(parents=True)
        shutil.copy(tmp_path / "spec.yaml", tmp_path / results / "specs" / "digest.yaml")
    (tmp_path / "earlier" / "batch.sqlite3").touch()
    found = gather(tmp_path, out=tmp_path / "out")
    assert len(found.specs) == 1
    assert found.skipped == (f"{tmp_path / 'earlier'}: the results of a batch",)
    with pytest.raises(UsageError, match="--out is the folder of the specs itself"):
        gather(tmp_path / "out", out=tmp_path / "out")


def test_faults_of_all_specs_are_told_at_once(tmp_path: Path) -> None:
    write_example(tmp_path / "good")
    write_example(tmp_path / "a", spec=changed(op="a") + "unknown_key: 1\n")
    write_example(tmp_path / "b", spec=changed(op="b").replace("dtype: float32", "dtype: floaty"))
    write_example(tmp_path / "c", spec=changed(op="c").replace('"ceil_div(n, 256)"', "n - n"))
    (tmp_path / "d.yaml").write_text("schema: tokitai/spec/v1\nop: [\n")
    asked = "    properties:\n      - {name: row-sum, output: c}\n    checks:\n"
    write_example(tmp_path / "e", spec=changed(op="e").replace("    checks:\n", asked))
    found = gather(tmp_path)
    assert [one.entry.op for one in found.specs] == ["vector-add"]
    lines = [str(fault) for fault in found.faults]
    assert len(lines) == 5
    shutil.rmtree(tmp_path / "good")
    with pytest.raises(SpecError) as caught:
        gather(tmp_path)
    assert str(caught.value).startswith("5 errors in the specs; nothing was run:\n")
    assert caught.value.exit_code == 2
    for path, words in [
        ("a/spec.yaml:", "unknown_key: unknown key"),
        ("b/spec.yaml:14:", "floaty"),
        ("c/spec.yaml", "variants.main.launches[0].grid[0]: a grid extent of 0"),
        ("d.yaml:", "not YAML"),
        ("e/spec.yaml", "row-sum"),
    ]:
        assert [line for line in lines if str(tmp_path / path) in line and words in line], path


def test_one_fault_is_told_as_itself(tmp_path: Path) -> None:
    path = write_example(tmp_path / "bad", spec=changed(op="bad") + "unknown_key: 1\n")
    with pytest.raises(SpecError, match="unknown key") as caught:
        gather(tmp_path)
    assert caught.value.where is not None
    assert caught.value.where.file == path
    assert caught.value.where.key == "unknown_key"


def test_two_specs_of_one_text_cannot_be_told_apart(tmp_path: Path) -> None:
    write_example(tmp_path / "a")
    write_example(tmp_path / "b")
    (fault,) = gather(tmp_path).faults
    assert re.search(r"b.spec\.yaml: the same text as .*another title", str(fault))


# Names.


def test_specs_of_one_op_are_named_by_their_paths(tmp_path: Path) -> None:
    for number, name in enumerate(("x/one.yaml", "x/two.yaml", "x/two.yml", "y/z/one.yaml")):
        folder = (tmp_path / name).parent
        write_example(folder, spec=changed(title=f"number {number}"))
        (folder / "spec.yaml").rename(tmp_path / name)
    write_example(tmp_path / "y", spec=changed(op="other"))
    found = gather(tmp_path)
    names = [one.entry.name for one in found.specs]
    assert names == ["x/one", "x/two.yaml", "x/two.yml", "other", "y/z/one"]
    assert [one.entry.op for one in found.specs].count("vector-add") == 4
    assert found.cases[0].id == "x/one/main/n=1/normal/0@cpu"
    assert len(set(ids(found))) == len(found.cases) == 5 * 9
    specs = {one.entry.name: one for one in found.specs}
    for case in found.cases:
        assert case.id.startswith(f"{case.name}/main/")
        assert case.case.loaded is specs[case.name].loaded


def test_a_path_that_is_called_as_an_op_keeps_its_suffix(tmp_path: Path) -> None:
    for op, title, name in (("add", "x", "mul"), ("add", "y", "b"), ("mul", "z", "c")):
        write_example(tmp_path, spec=changed(op=op, title=title)).rename(tmp_path / f"{name}.yaml")
    assert [one.entry.name for one in gather(tmp_path).specs] == ["b", "mul", "mul.yaml"]


# Selection.

SUITES = """
  full:
    - {shape: {n: 257}, why: again}
    - {shape: {n: 300}}
    - {shape: {n: 0}, expect: empty}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three specs: with suites quick and full, with quick alone, and without any."""
    both = changed(op="both").replace("\nnon_claims:", f"{SUITES}\nnon_claims:")
    write_example(tmp_path / "both", spec=both.replace("default: 1000", "default: 1000, min: 0"))
    write_example(tmp_path / "one", spec=changed(op="one").replace("main:", "other:"))
    none = re.sub(r"(?s)suites:.*\n\n", "", changed(op="plain"))
    write_example(tmp_path / "plain", spec=none.replace("special:", "odd:"))
    return tmp_path


def selected(found: Collected) -> set[str]:
    """NAME/variant/shape/profile of the cases."""
    return {case.id.rpartition("/")[0] for case in found.cases}


def test_quick_is_taken_or_the_default_shape(folder: Path) -> None:
    found = gather(folder)
    shapes = {(case.case.loaded.spec.op, case.case.shape["n"]) for case in found.cases}
    assert shapes == {(op, n) for op in ("both", "one") for n in (1, 256, 257)} | {("plain", 1000)}
    assert [one.entry.cases for one in found.specs] == [9, 9, 3]
    assert [case.number for case in found.cases] == list(range(21))
    assert found.skipped == ()


def test_cases_stand_in_the_order_of_specs_and_plans(folder: Path) -> None:
    found = gather(folder, seed="3,1")
    expected = []
    for one in found.specs:
        suite = "quick" if one.loaded.spec.suites else None
        planned = plan.plan(one.loaded, plan.Selection(seeds=(3, 1), suite=suite))
        expected += [f"{case.id}@cpu" for case in planned.cases]
    assert ids(found) == expected


def absent(device: RocmDevice, options: DeviceOptions) -> Probe:
    """What the probe of a machine without the device says."""
    del options
    return Probe(device.name, device.traits.device_class, available=False, buildable=False, arch="")


def test_devices_vary_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RocmDevice, "probe", absent)
    found = gather(folder, device="all")
    assert "cpu" in found.devices
    assert "rocm" not in found.devices
    first = found.cases[: len(found.devices)]
    assert [case.device for case in first] == list(found.devices)
    assert len({case.case.id for case in first}) == 1
    assert len({case.group for case in first}) == len(first)
    missing = gather(folder, device="rocm")
    assert missing.devices == ("rocm",)
    assert len(missing.cases) == 21


def test_suites_are_joined_without_repeats(folder: Path) -> None:
    found = gather(folder, suite=["quick", "full"])
    assert found.skipped == (
        f"{folder / 'one' / 'spec.yaml'}: has no suite full",
        f"{folder / 'plain' / 'spec.yaml'}: has no suite quick, full",
    )
    both = [case for case in found.cases if case.name == found.specs[0].entry.name]
    assert sorted({case.case.shape["n"] for case in both}) == [0, 1, 256, 257, 300]
    assert len(ids(found)) == len(set(ids(found))) == 5 * 3 + 3 * 3
    assert {case.task().empty for case in both if case.case.shape["n"] == 0} == {True}
    assert not any(case.task().empty for case in both if case.case.shape["n"])


@pytest.mark.parametrize(
    ("options", "wanted", "skipped"),
    [
        ({"op": "both,plain"}, {"both/main", "plain/main"}, []),
        ({"variant": ["other"]}, {"one/other"}, []),
        ({"variant": "other", "op": "one"}, {"one/other"}, []),
        ({"profile": "odd"}, {"plain/main"}, []),
        ({"profile": "odd,special", "op": ["plain"]}, {"plain/main"}, ["--profile special"]),
        ({"op": "bothh"}, set(), ["--op bothh: no spec has it; did you mean both?"]),
        ({"op": "bothh,one"}, {"one/other"}, ["--op bothh: "]),
        ({"variant": "othr"}, set(), ["--variant othr: no spec has it; did you mean other?"]),
        ({"variant": "main", "op": "one"}, set(), ["--variant main: no spec has it"]),
        ({"suite": "ful", "op": "both"}, set(), ["--suite ful: .*mean full", "has no suite ful"]),
        ({"keyword": "nothing-like-it"}, set(), ["-k nothing-like-it: matches none of 21 cases"]),
    ],
    ids=[f"filter-{number}" for number in range(11)],
)
def test_filters_narrow(
    folder: Path, options: dict[str, Any], wanted: set[str], skipped: list[str]
) -> None:
    lists = {key: [value] if isinstance(value, str) else value for key, value in options.items()}
    if "keyword" in options:
        lists["keyword"] = options["keyword"]
    found = gather(folder, **lists)
    assert {"/".join(case.id.split("/")[:2]) for case in found.cases} == wanted
    assert len(found.specs) == len(wanted) == len(found.setup.specs)
    assert len(found.skipped) == len(skipped)
    for text, words in zip(found.skipped, skipped, strict=True):
        assert re.search(words, text)


def test_profiles_of_one_spec_are_those_asked_for(folder: Path) -> None:
    found = gather(folder, profile=["odd", "normal"])
    profiles = {(one.case.loaded.spec.op, one.case.profile) for one in found.cases}
    assert profiles == {
        ("both", "normal"),
        ("one", "normal"),
        ("plain", "normal"),
        ("plain", "odd"),
    }


def with_odd(text: str = SPEC) -> str:
    """The example with a second variant, `odd`, which takes odd n only."""
    start, end = text.index("  main:"), text.index("profiles:")
    main = text[start:end].rstrip()
    odd = main.replace("main:", "odd:").replace(
        "    inputs:", '    requires: ["n % 2 == 1"]\n    inputs:'
    )
    return f"{text[:start]}{main}\n{odd}\n\n{text[end:]}"


def test_what_a_variant_cannot_take_is_left_out_and_counted(tmp_path: Path) -> None:
    write_example(tmp_path, spec=with_odd())
    found = gather(tmp_path)
    odd = {case.case.shape["n"] for case in found.cases if case.case.variant_name == "odd"}
    assert odd == {1, 257}
    assert len(found.cases) == 3 * (3 + 2)
    assert (found.left_out, found.skipped) == (1, ())
    assert gather(tmp_path, suite=["quick", "quick"]).left_out == 1


def test_where_no_shape_of_a_suite_is_taken_the_spec_is_told(tmp_path: Path) -> None:
    write_example(
        tmp_path / "odd", spec=with_odd().replace("n: 257", "n: 258").replace("n: 1}", "n: 2}")
    )
    write_example(tmp_path / "plain", spec=changed(op="plain"))
    found = gather(tmp_path, variant=["odd"])
    assert (found.cases, found.specs, found.left_out) == ((), (), 3)
    (told,) = found.skipped
    assert told.startswith(
        f"{tmp_path / 'odd' / 'spec.yaml'}: nothing to run: odd requires n % 2 == 1"
    )
    both = gather(tmp_path, variant=["odd", "main"])
    assert (len(both.cases), both.left_out) == (18, 3)


@pytest.mark.parametrize(("variants", "told"), [([], 0), (["odd", "main"], 1)])
def test_a_variant_that_cannot_take_the_default_shape_leaves_the_others(
    tmp_path: Path, variants: list[str], told: int
) -> None:
    write_example(tmp_path, spec=re.sub(r"(?s)suites:.*\n\n", "", with_odd()))
    found = gather(tmp_path, variant=variants)
    assert {case.case.variant_name for case in found.cases} == {"main"}
    assert (found.left_out, len(found.skipped)) == (1, told)


def test_more_than_a_plan_takes_is_an_error(folder: Path) -> None:
    with pytest.raises(UsageError, match="combinations, a spec has at most"):
        gather(folder, seed=range(20_000))


def test_entries_say_what_a_spec_is_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_example(tmp_path / "a b")
    monkeypatch.chdir(tmp_path)
    (one,) = gather("a b").specs
    kernel = hashlib.sha256((path.parent / "vector_add.hip").read_bytes()).hexdigest()
    entry = one.entry
    assert (entry.name, entry.op, entry.cases) == ("vector-add", "vector-add", 9)
    assert entry.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert entry.path == entry.called == "a b/spec.yaml"
    oracle = hashlib.sha256((path.parent / "oracle.py").read_bytes()).hexdigest()
    assert entry.sources == {kernel: "vector_add.hip", oracle: "oracle.py"}
    assert one.sources[kernel].text == example("vector_add.hip")
    first, *packages = entry.oracles
    assert first == "oracle.py:vector_add"
    assert [name.rpartition(" ")[0] for name in packages] == ["package numpy"]
    (place,) = gather("a b").setup.specs
    assert (place.digest, place.path, place.called) == (entry.digest, str(path), "a b/spec.yaml")


def test_built_in_specs_are_called_by_their_ops() -> None:
    found = gather(resources.specs_dir(), op=["softmax"])
    assert [place.called for place in found.setup.specs] == ["softmax"]


def test_an_oracle_that_cannot_be_read_stops_no_other_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_example(tmp_path / "good")
    lost = write_example(tmp_path / "lost", spec=changed(op="lost")).parent
    whole = gather(tmp_path)
    identity = references.identity

    def lose(variant: Variant, folder: Path) -> str:
        if folder == lost:
            (folder / "oracle.py").unlink(missing_ok=True)
        return identity(variant, folder)

    monkeypatch.setattr(references, "identity", lose)
    found = gather(tmp_path)
    oracles = {
        one.entry.op: [name for name in one.entry.oracles if not name.startswith("package ")]
        for one in found.specs
    }
    assert oracles == {
        "lost": [],
        "vector-add": ["oracle.py:vector_add"],
    }
    assert ids(found) == ids(whole)
    same = [a.fingerprint == b.fingerprint for a, b in zip(found.cases, whole.cases, strict=True)]
    assert same == [True] * 9 + [False] * 9


def test_a_missing_kernel_or_oracle_is_told_before_anything_runs(tmp_path: Path) -> None:
    write_example(tmp_path / "good")
    for name in ("oracle.py", "vector_add.hip"):
        (write_example(tmp_path / name, spec=changed(op=name[:4])).parent / name).unlink()
    faults = gather(tmp_path).faults
    assert [str(fault).count("no such file") for fault in faults] == [1, 1]


def test_a_spec_at_fault_stops_no_other_and_is_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_example(tmp_path / "specs" / "good")
    write_example(tmp_path / "specs" / "bad", spec=changed(op="bad") + "unknown_key: 1\n")
    words = [str(tmp_path / "specs"), "--suite", "quick", "--device", "cpu"]
    out = tmp_path / "out"
    assert run(["batch", *words, "--dry-run", "-q"]) == 2
    assert "unknown_key" in capsys.readouterr().err
    assert run(["batch", *words, "--out", str(out), "-q"]) == 2
    assert "a spec that cannot be used" in capsys.readouterr().out
    index = read_index(out / "index.json")
    assert index.verdict == "not-run"
    assert index.counts == {"verified": 8, "vacuous": 1}
    assert run(["claims", str(out / "evidence"), "--require", "numerical-agreement"]) == 0
    capsys.readouterr()
    assert run(["claims", str(out), "--require", "numerical-agreement"]) == 1
    told = capsys.readouterr().out
    assert "a spec could not be used: " in told
    assert "bad/spec.yaml" in told
    assert "1 spec could not be used: " in index.reason
    (fault,) = index.faults
    assert "bad/spec.yaml" in fault
    assert "unknown_key: unknown key" in fault
    page = (out / "index.md").read_text("utf-8")
    assert "Specs that cannot be used" in page
    suites = (out / "junit.xml").read_text("utf-8")
    assert '<testsuite name="specs that cannot be used" tests="1"' in suites


def test_weights_grow_with_the_shape(folder: Path) -> None:
    found = gather(folder)
    weights = {(one.name, one.case.shape["n"]): one.weight for one in found.cases}
    first, *_, last = (one.entry.name for one in found.specs)
    assert weights[last, 1000] > weights[first, 257] > 0


# Keywords.


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", True),
        ("SOFTMAX", True),
        ("rows=4,cols=1", True),
        ("1", True),
        ("0", True),
        ("7", False),
        ("true", False),
        ("none", False),
        ("not true", True),
        ("0@CPU and /normal/", True),
        ("a.b or fwd", True),
        ("a:b or a_b or a-b", False),
        ("NOT gemm AND Softmax", True),
        ("not (softmax or gemm)", False),
        ("not not softmax", True),
        ("softmax and(fwd)", True),
        ("((fwd))", True),
        ("gemm and gemm or softmax", True),
        ("softmax or gemm and gemm", True),
        ("not softmax or softmax", True),
    ],
)
def test_keywords_match_parts_of_the_id(text: str, wanted: bool) -> None:
    assert matcher(text)("softmax/fwd/rows=4,cols=16/normal/0@cpu") is wanted


def test_case_of_letters_does_not_count_in_the_id_either() -> None:
    assert matcher("mine and MINE")("Kernels/Mine/main/n=1/normal/0@cpu")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  ", "position 1"),
        ("a b", "position 3"),
        ("a not b", "position"),
        ("a and b not c", "position"),
        ("(a) b", "position 5"),
        ("x and (a) (b)", "position"),
        ("a (b)", "position"),
        ("and", "position 1"),
        ("a and or b", "position 7"),
        ("not and b", "position 5"),
        ("a or", "position"),
        ("not", "position"),
        ("()", "position 1"),
        ("a and ()", "position 7"),
        ("(a or)", "position 6"),
        ("(a", "position 1"),
        ("a)", "position 2"),
        ("a & b", "'&' at position 3"),
        ("!a", "'!' at position 1"),
        ("a[0]", r"'\[' at position 2"),
        ("'a'", '"\'" at position 1'),
        ("(" * 300 + "a" + ")" * 300, "position"),
        ("not " * 60 + "a", "nested deeper"),
        ("not " * 5000 + "a", "nested deeper"),
    ],
)
def test_a_keyword_that_cannot_be_read_is_an_error(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"^-k ") as caught:
        matcher(text)
    assert re.search(message, str(caught.value))
    assert caught.value.hint


WORDS = st.sampled_from(["a", "b", "c", "1", "true", "ab"])


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(parts, min_size=2, max_size=4)
    return st.one_of(
        several.flatmap(
            lambda given: st.lists(
                st.sampled_from([" and ", " or "]), min_size=len(given) - 1, max_size=len(given) - 1
            ).map(
                lambda between: (
                    given[0] + "".join(a + b for a, b in zip(between, given[1:], strict=True))
                )
            )
        ),
        parts.map(lambda text: f"({text})"),
        parts.map(lambda text: f"not {text}"),
        parts.map(lambda text: f"not ({text})"),
    )


@given(st.recursive(WORDS, joined, max_leaves=12), st.text("abc1true", max_size=6))
def test_keywords_mean_what_python_means(text: str, id: str) -> None:
    meant = re.sub(
        r"\w+", lambda m: m[0] if m[0] in {"and", "or", "not"} else f"({m[0]!r} in id)", text
    )
    assert matcher(text)(id) is eval(meant, {"id": id})


@given(
    st.text("ab ()!&,", max_size=12)
    | st.lists(st.sampled_from(["a", "not", "and", "or", "(", ")"])).map(" ".join)
)
def test_any_text_is_an_expression_or_a_usage_error(text: str) -> None:
    try:
        wanted = matcher(text)
    except UsageError:
        return
    assert wanted("a/b") in {True, False}


def test_the_deepest_expression_is_evaluated() -> None:
    text = "a"
    for level in range(MAX_DEPTH):
        text = f"b {'and' if level % 2 else 'or'} ({text})"
    assert matcher(text)("ab") is True
    assert matcher(text)("c") is False


# Shards.


def made(*groups: tuple[str, int, float]) -> list[BatchCase]:
    """Cases of groups of a size and a weight each; the parts of the case itself do not matter."""
    case: Any = None
    return [
        BatchCase(f"{name}/{index}@cpu", number, "x", case, "cpu", "", name, weight)
        for number, (name, index, weight) in enumerate(
            (name, index, weight) for name, size, weight in groups for index in range(size)
        )
    ]


GROUPS = st.lists(
    st.tuples(st.integers(0, 30).map(str), st.integers(1, 4), st.floats(0, 1e9)),
    unique_by=lambda group: group[0],
    max_size=12,
)


@given(GROUPS, st.integers(1, 6), st.randoms(use_true_random=False))
def test_shards_part_the_cases_by_whole_groups(
    groups: list[tuple[str, int, float]], count: int, random: Any
) -> None:
    cases = made(*groups)
    parts = [shard(cases, index, count) for index in range(1, count + 1)]
    assert sorted(case.id for part in parts for case in part) == sorted(case.id for case in cases)
    homes = [{case.group for case in part} for part in parts]
    assert sum(map(len, homes)) == len(groups)
    for part in parts:
        assert [case.number for case in part] == list(range(len(part)))
        places = [[one.id for one in cases].index(case.id) for case in part]
        assert places == sorted(places)
    loads = [sum(case.weight for case in part) for part in parts]
    heaviest = max((size * weight for _, size, weight in groups), default=0.0)
    assert max(loads) - min(loads) <= heaviest * (1 + 1e-9)
    shuffled = list(cases)
    random.shuffle(shuffled)
    again = [shard(shuffled, index, count) for index in range(1, count + 1)]
    assert [{case.group for case in part} for part in again] == homes


def test_shards_are_balanced_by_weight() -> None:
    cases = made(("a", 1, 7.0), ("b", 2, 2.0), ("c", 1, 3.0), ("d", 1, 1.0))
    groups = [{case.group for case in shard(cases, index, 2)} for index in (1, 2)]
    assert groups == [{"a", "d"}, {"b", "c"}]
    cases = made(("a", 1, 1.0), ("b", 1, 1.0), ("c", 1, 2.0))
    groups = [{case.group for case in shard(cases, index, 2)} for index in (1, 2)]
    assert groups == [{"c"}, {"a", "b"}]


def test_a_shard_of_a_batch_has_whole_specs_and_its_own_cases(folder: Path) -> None:
    whole = gather(folder)
    parts = [gather(folder, shard=f"{index}/3") for index in (1, 2, 3)]
    assert sorted(name for part in parts for name in ids(part)) == sorted(ids(whole))
    prints_of = {case.id: case.fingerprint for case in whole.cases}
    for part in parts:
        assert part.cases
        assert [case.number for case in part.cases] == list(range(len(part.cases)))
        assert [one.entry for one in part.specs] == [one.entry for one in whole.specs]
        assert all(prints_of[case.id] == case.fingerprint for case in part.cases)
        digests = {one.entry.name: one.loaded.digest for one in part.specs}
        assert all(digests[case.name] == case.case.loaded.digest for case in part.cases)


# Fingerprints.


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    loaded = spec.load(write_example(tmp_path_factory.mktemp("case")))
    return plan.case_of(loaded, "main", {"n": 4}, "normal", 0)


def of(case: Case, **ingredients: Any) -> str:
    given: dict[str, Any] = {
        "devices": ("cpu",),
        "settings": Settings(),
        "spec": "5",
        "tool": "7",
        "oracle": "0",
    }
    return fingerprint(case, **{**given, **ingredients})


@pytest.mark.parametrize(
    "ingredients",
    [
        {"devices": ("cuda",)},
        {"devices": ("cpu", "gfx")},
        {"spec": "6"},
        {"tool": "8"},
        {"oracle": ""},
        {"settings": Settings(repeat=3)},
        {"settings": Settings(warmup=1)},
        {"settings": Settings(timeout=61.0)},
        {"settings": Settings(arch="gfx942")},
        {"settings": Settings(warp_size=64)},
    ],
    ids=str,
)
def test_a_fingerprint_changes_with_every_ingredient(
    case: Case, ingredients: dict[str, Any]
) -> None:
    assert of(case, **ingredients) != of(case)


@pytest.mark.parametrize(
    "changes",
    [
        {"variant_name": "other"},
        {"shape": {"n": 5}},
        {"profile": "special"},
        {"seed": 1},
        {"expect_empty": True},
    ],
    ids=str,
)
def test_a_fingerprint_changes_with_the_case(case: Case, changes: dict[str, Any]) -> None:
    assert of(msgspec.structs.replace(case, **changes)) != of(case)


def test_a_fingerprint_changes_with_numpy_and_python(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = of(case)
    with monkeypatch.context() as patch:
        patch.setattr(np, "__version__", "0.0")
        other_numpy = of(case)
    with monkeypatch.context() as patch:
        patch.setattr(platform, "python_version", lambda: "0.0")
        other_python = of(case)
    assert len({before, other_numpy, other_python, of(case)}) == 3


@pytest.mark.parametrize("settings", [Settings(threads=7), Settings(gpu=3)], ids=str)
def test_a_fingerprint_does_not_depend_on_threads_and_gpus(case: Case, settings: Settings) -> None:
    assert of(case, settings=settings) == of(case)
    assert set(Settings.__struct_fields__) == {
        *("repeat", "warmup", "timeout", "arch", "warp_size", "sanitize", "strict"),
        *("threads", "gpu"),
    }


def test_the_same_batch_elsewhere_has_the_same_fingerprints(tmp_path: Path) -> None:
    write_example(tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there" / "deep")
    here, there = gather(tmp_path / "here"), gather(tmp_path / "there", jobs=1)
    assert [case.fingerprint for case in here.cases] == [case.fingerprint for case in there.cases]
    assert ids(here) == ids(there)
    assert len({case.fingerprint for case in here.cases}) == len(here.cases)


def test_the_tool_is_known_by_its_sources_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest(data: Path) -> str:
        tool_digest.cache_clear()
        monkeypatch.setattr(prints, "_PACKAGE", package)
        monkeypatch.setattr(resources, "_ROOT", data)
        return tool_digest()

    package = prints._PACKAGE
    here = digest(package.parent)
    try:
        data = tmp_path / "tokitai_cli" / "_data"
        source, package = package, tmp_path / "tokitai_cli"
        shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__", "_data"))
        shutil.copytree(source.parent / "kernels", data / "kernels")
        (data / "stray.py").touch()
        assert digest(data) == here
        (data / "kernels" / "softmax.hip").write_text("another kernel, known by its build")
        assert digest(data) == here
        header = data / "kernels" / "harness" / "tokitai_frames.hpp"
        whole = header.read_bytes()
        header.write_bytes(whole + b" ")
        changed_header = digest(data)
        header.write_bytes(whole)
        (package / "core" / "numerics.py").rename(package / "core" / "numbers.py")
        assert len({here, changed_header, digest(data)}) == 3
    finally:
        tool_digest.cache_clear()
