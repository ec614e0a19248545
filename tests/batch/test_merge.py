"""Merging shards: one batch comes out as if it had run in one place, and unlike runs are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import batch_samples as batches
from tests import evidence_samples as samples
from tests.batch_samples import Sample
from tokitai_cli import evidence
from tokitai_cli.batch.index import render_folder, summarise
from tokitai_cli.batch.index.index_files import read_cases
from tokitai_cli.batch.index.summary import UNSANITIZED
from tokitai_cli.batch.joining import merge
from tokitai_cli.batch.store.database import Store
from tokitai_cli.core.errors import StorageError, UsageError
from tokitai_cli.core.model.batch_record import BatchEnded, Begun
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.verdict import Verdict

RERUN = "tokitai batch specs --seed 0 --device cpu --shard {} --out reports/s{}"
PROFILES = ("normal", "uniform", "large", "constant")


class Half(msgspec.Struct):
    """A shard that is about to be written, for tests to change."""

    begun: Begun
    ended: BatchEnded | None
    cases: list[Sample]
    text: str = batches.SPEC_TEXT

    def change(self, **fields: Any) -> None:
        self.begun = msgspec.structs.replace(self.begun, **fields)

    def each(self, **fields: Any) -> None:
        self.cases = [msgspec.structs.replace(one, **fields) for one in self.cases]


def half(number: int) -> Half:
    """One of two shards: two of four cases."""
    mine = PROFILES[2 * number - 2 : 2 * number]
    begun = batches.begun(
        [batches.entry(cases=4)],
        2,
        shard=f"{number}/2",
        rerun=RERUN.format(f"{number}/2", number),
        left_out=3,
        started=f"2023-11-14T22:13:2{number}Z",
    )
    cases = [
        Sample(record=batches.case(profile, shape=shape(number)), host=f"node-{number}")
        for profile in mine
    ]
    return Half(begun, batches.ended(notes=[f"note {number}"], seconds=4.0 + number), cases)


def shape(number: int) -> dict[str, int]:
    return {"m": 16 * number, "n": 64, "k": 64}


def write(tmp_path: Path, one: Half, name: str) -> Path:
    return batches.write(tmp_path / name, one.cases, one.begun, one.ended, [one.text])


def folders(tmp_path: Path, change: Callable[[Half], None] | None = None) -> list[Path]:
    """Both shards on disk, the second one changed."""
    first, second = half(1), half(2)
    if change is not None:
        change(second)
    return [write(tmp_path, first, "s1"), write(tmp_path, second, "s2")]


def test_a_shard_lists_no_spec_whose_cases_are_all_in_others(tmp_path: Path) -> None:
    one = half(1)
    (entry,) = one.begun.specs
    one.change(specs=[entry, msgspec.structs.replace(entry, name="elsewhere")])
    told = json.loads(render_folder(write(tmp_path, one, "s1"), "json"))
    assert [spec["name"] for spec in told["specs"]] == [entry.name]


def test_shards_become_one_batch(tmp_path: Path) -> None:
    shards = folders(tmp_path)
    out = tmp_path / "all"
    index = merge(shards[::-1], out)
    assert (index.verdict, index.counts, index.total) == (Verdict.VERIFIED, {"verified": 4}, 4)
    assert (index.shard, index.shards, index.not_started) == ("", ["1/2", "2/2"], 0)
    assert (index.left_out, index.hosts) == (3, ["node-1", "node-2"])
    assert (index.started, index.seconds) == ("2023-11-14T22:13:21Z", 6.0)
    longest = "the shards run at the same time: the time given here is that of the longest"
    assert index.notes == ["note 1", "note 2", longest, UNSANITIZED]
    assert index.rerun == f"tokitai batch specs --seed 0 --device cpu --out {out}"
    rows = list(read_cases(index, out / "index.json"))
    assert [row.profile for row in rows] == list(PROFILES)
    found = evidence.read(out / "evidence/gemm-bw.json")
    assert len(found.cases) == 4
    assert found.sources[samples.SOURCE].text == samples.SOURCE_TEXT
    with Store.read(out) as joined:
        dones = list(joined.done())
        assert [done.number for done in dones] == [0, 1, 2, 3]
        assert list(joined.newest()) == dones
        with Store.read(shards[1]) as shard:
            for number in (0, 1):
                (before, result), (after, copied) = shard.result(number), joined.result(2 + number)
                assert after == msgspec.structs.replace(before, number=2 + number)
                assert copied == result


def test_a_merge_says_what_one_run_would_have_said(tmp_path: Path) -> None:
    shards = folders(tmp_path)
    merged = merge(shards, tmp_path / "all")
    cases = [*half(1).cases, *half(2).cases]
    begun = batches.begun([batches.entry(cases=4)], 4, left_out=3)
    one = batches.write(tmp_path / "one", cases, begun, batches.ended())
    with Store.open(one) as store:
        alone = summarise(store)
    for field in (
        "verdict",
        "reason",
        "counts",
        "matrix",
        "specs",
        "devices",
        "builds",
        "failures",
    ):
        assert getattr(merged, field) == getattr(alone, field)
    digests = [evidence.read(tmp_path / name / "evidence/gemm-bw.json") for name in ("all", "one")]
    assert digests[0].cases == digests[1].cases


def test_kept_results_stay_kept(tmp_path: Path) -> None:
    shards = folders(tmp_path, lambda one: one.each(kept=True))
    index = merge(shards, tmp_path / "all")
    assert index.kept == 2


def test_a_merge_can_be_done_again_where_a_shard_ran_again(tmp_path: Path) -> None:
    shards = folders(tmp_path)
    merge(shards, tmp_path / "all")
    again = half(2)
    again.change(resumed=True, started="2023-11-15T00:00:00Z")
    again.cases[0] = Sample(
        record=samples.refuted(
            profile="large", spec=batches.digest_of(batches.SPEC_TEXT), shape=shape(2)
        )
    )
    write(tmp_path, again, "s2")
    index = merge(shards, tmp_path / "all")
    assert index.counts == {"refuted": 1, "verified": 3}


def unlike_tool(**changes: str) -> Callable[[Half], None]:
    return lambda one: one.change(tool=msgspec.structs.replace(one.begun.tool, **changes))


def other_spec(one: Half) -> None:
    one.text = batches.SPEC_TEXT.replace("inner", "other")
    digest = batches.digest_of(one.text)
    one.change(specs=[batches.entry(text=one.text, cases=4)])
    one.cases = [
        msgspec.structs.replace(case, record=msgspec.structs.replace(case.record, spec=digest))
        for case in one.cases
    ]


def other_compiler(one: Half) -> None:
    compiler = samples.build().compiler
    assert compiler is not None
    unlike = msgspec.structs.replace(compiler, version="g++ 14.1.0", sha256="7" * 64)
    one.each(build=samples.build(compiler=unlike), build_key="c" * 64)


def not_whole(how: str | None) -> Callable[[Half], None]:
    def change(one: Half) -> None:
        one.ended = None if how is None else batches.ended(how)
        one.cases = one.cases[:1]

    return change


def as_first(one: Half) -> None:
    one.cases = [one.cases[0], half(1).cases[1]]


UNLIKE: dict[str, tuple[Callable[[Half], None], str]] = {
    "version": (unlike_tool(version="9.9.9"), r"version of tokitai is \d\S+ .* and 9\.9\.9"),
    "commit": (unlike_tool(commit="f" * 40), "the commit of tokitai is 0123.* and ffff"),
    "sources": (lambda one: one.change(tool_digest="8" * 64), "the digest of tokitai"),
    "repeat": (
        lambda one: one.change(settings=Settings(repeat=3)),
        "the setting repeat is 2 in the first and 3 in the other",
    ),
    "timeout": (lambda one: one.change(settings=Settings(timeout=5)), "the setting timeout"),
    "arch": (lambda one: one.change(settings=Settings(arch="gfx90a")), "the setting arch"),
    "devices": (lambda one: one.change(devices=["cpu", "rocm"]), "devices is cpu .* cpu, rocm"),
    "selection": (
        lambda one: one.change(selection=["--seed", "1", "--device", "cpu"]),
        "the selection is --seed 0 .* and --seed 1",
    ),
    "spec": (other_spec, "the digest of spec gemm-bw"),
    "oracle": (
        lambda one: one.change(specs=[batches.entry(cases=4, oracles={"x": "7" * 64})]),
        "the digest of an oracle of gemm-bw",
    ),
    "left out": (lambda one: one.change(left_out=4), "combinations skipped is 3 .* and 4"),
    "count": (lambda one: one.change(shard="2/3"), "the number of shards is 2 .* and 3"),
    "twice": (lambda one: one.change(shard="1/2"), "shard 1/2 is given twice"),
    "no shard": (
        lambda one: one.change(shard=""),
        "s2 is not a shard: the batch there ran as a whole",
    ),
    "arch found": (
        lambda one: one.each(device=samples.device(arch="aarch64")),
        "the architecture of device cpu is host-simt x86-64 .* and host-simt aarch64",
    ),
    "compiler": (
        other_compiler,
        r"compiler for device cpu is g\+\+ \(Debian .* and g\+\+ 14\.1\.0",
    ),
    "interrupted": (not_whole("interrupted"), "2/2 in .*s2 is incomplete: it ended: interrupted"),
    "killed": (
        not_whole(None),
        r"is incomplete: .* with 1 of 2 cases finished \(finish it: .*--resume",
    ),
    "lacking": (not_whole("whole"), "is incomplete: .* with 1 of 2 cases"),
    "in both": (as_first, "the case gemm-bw/grad-a/.*/uniform/0@cpu occurs in .*s1 and in .*s2"),
    "other cut": (
        lambda one: one.change(specs=[batches.entry(cases=5)]),
        "the number of cases of gemm-bw is 4 .* and 5",
    ),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_unlike_shards_are_refused_by_the_difference(tmp_path: Path, name: str) -> None:
    change, match = UNLIKE[name]
    shards = folders(tmp_path, change)
    with pytest.raises(UsageError, match=match):
        merge(shards, tmp_path / "all")
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize("change", [{"threads": 4}, {"gpu": 1}])
def test_a_shard_has_its_own_threads_and_gpus(tmp_path: Path, change: dict[str, Any]) -> None:
    shards = folders(tmp_path, lambda one: one.change(settings=Settings(**change)))
    assert merge(shards, tmp_path / "all").verdict is Verdict.VERIFIED


def test_missing_shards_are_named(tmp_path: Path) -> None:
    first = half(1)
    first.change(shard="1/4")
    third = half(2)
    third.change(shard="3/4")
    shards = [write(tmp_path, first, "s1"), write(tmp_path, third, "s3")]
    with pytest.raises(UsageError, match="2 shards of 4 missing: 2/4, 4/4"):
        merge(shards, tmp_path / "all")


def test_shards_that_lack_cases_of_the_batch_are_refused(tmp_path: Path) -> None:
    first, second = half(1), half(2)
    for one in (first, second):
        one.change(specs=[batches.entry(cases=7)])
    shards = [write(tmp_path, first, "s1"), write(tmp_path, second, "s2")]
    with pytest.raises(UsageError, match="the shards have 4 cases in all, and the batch 7"):
        merge(shards, tmp_path / "all")


@pytest.mark.parametrize("taken", ["s1", "s2", "other", "part"])
def test_an_out_that_is_taken_is_refused(tmp_path: Path, taken: str) -> None:
    shards = folders(tmp_path)
    batches.write(
        tmp_path / "other",
        [Sample(record=batches.case())],
        batches.begun([batches.entry()], 1),
        batches.ended(),
    )
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    match = (
        "is one of the shards" if taken in ("s1", "s2") else "contains a batch that is not a merge"
    )
    if taken == "part":
        merge(shards, tmp_path / "part")
        before |= {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        shards = folders_of_another(tmp_path / "more")
        before |= {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match=match):
        merge(shards, tmp_path / taken)
    assert {path: path.read_bytes() for path in before} == before


def folders_of_another(tmp_path: Path) -> list[Path]:
    """Shards of another selection, alike among themselves."""
    found = []
    for number in (1, 2):
        one = half(number)
        one.change(selection=["--seed", "7", "--device", "cpu"])
        found.append(write(tmp_path, one, f"s{number}"))
    return found


def test_what_is_no_folder_of_a_batch_is_told(tmp_path: Path) -> None:
    shards = folders(tmp_path)
    with pytest.raises(StorageError, match=re.escape("is not the folder of a batch")):
        merge([*shards, tmp_path / "nowhere"], tmp_path / "all")
    with pytest.raises(UsageError, match="no shard is given"):
        merge([], tmp_path / "all")
