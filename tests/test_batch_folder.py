"""The folder of a batch: what was written is read back or refused, and never half of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import batch_samples as batches
from tests import evidence_samples as samples
from tests.batch_crash import begin, sample
from tokitai_cli.batch.folder import BatchFolder, case_file
from tokitai_cli.batch.journal import Journal
from tokitai_cli.errors import StorageError
from tokitai_cli.model import encoding
from tokitai_cli.model.batch import CaseResult, Done, Reply
from tokitai_cli.model.verdict import Verdict

JOURNAL = "journal.jsonl"


def batch(path: Path, *numbers: int) -> Path:
    """A batch of these cases that has not ended; returns the folder's path."""
    with BatchFolder.open(path) as folder:
        begin(folder)
        folder.commit([sample(number) for number in numbers])
    return path


def newest(path: Path) -> set[int]:
    with BatchFolder.open(path) as folder:
        return {done.number for done in folder.newest().values()}


def test_everything_is_read_back(tmp_path: Path) -> None:
    worst = msgspec.structs.replace(samples.WORST, got=float("nan"), error=float("inf"))
    refuted = samples.refuted(outputs=[samples.output(checks=[samples.check(worst=[worst])])])
    items = [
        batches.Sample(record=refuted, log="\x1b[31mred\u202e\udcff\n").finished(4),
        batches.Sample(record=batches.case(shape={"m": 1}), build=None).finished(5),
    ]
    start = batches.begun([batches.entry()], 2)
    text = batches.SPEC_TEXT.encode()
    digest = batches.digest_of(batches.SPEC_TEXT)
    with BatchFolder.open(tmp_path / "a" / "b") as folder:
        folder.begin(start, {digest: text}, {samples.SOURCE: batches.SOURCE})
        folder.commit(items)
        assert folder.ended() is None
        folder.end(batches.ended("interrupted", notes=["one", "two"]))
    with BatchFolder.read_only(tmp_path / "a" / "b") as folder:
        assert folder.begun() == start
        assert folder.ended() == batches.ended("interrupted", notes=["one", "two"])
        first, second = folder.done()
        assert (first.id, first.number, first.fingerprint) == (items[0].id, 4, "f" * 64)
        assert (first.verdict, first.seconds, first.kept) == (Verdict.REFUTED, 0.25, False)
        assert first.device_identity == "identity"
        assert folder.newest() == {first.id: first, second.id: second}
        result = folder.result(first)
        assert result == msgspec.json.decode(items[0].reply.result, type=CaseResult)
        assert result.record.outputs[0].checks[0].worst[0].got == "nan"
        assert result.log == "\x1b[31mred\u202e\\udcff\n"
        assert folder.build(first.build) == items[0].reply.builds[first.build]
        assert folder.device(second.device) == items[1].reply.devices[second.device]
        assert folder.spec(digest) == text
        assert folder.source(samples.SOURCE) == batches.SOURCE
        assert second.build == ""
        assert folder.ignored == 0


def test_what_is_on_disk_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files before their names, names before lines, lines before the return; and no sync too many."""
    steps: list[tuple[str, str]] = []
    names: dict[int, str] = {}

    def follow(name: str, told: Callable[..., str]) -> None:
        real = getattr(os, name)

        def call(*args: Any, **named: Any) -> Any:
            steps.append((name, told(*args)))
            return real(*args, **named)

        monkeypatch.setattr(os, name, call)

    real_open = os.open

    def opened(path: Any, *args: Any, **named: Any) -> int:
        descriptor = real_open(path, *args, **named)
        names[descriptor] = Path(path).name
        return descriptor

    monkeypatch.setattr(os, "open", opened)
    with BatchFolder.open(tmp_path) as folder:
        follow("pwrite", lambda fd, *_: names[fd])
        follow("fsync", lambda fd: names[fd])
        follow("replace", lambda source, _: Path(source).name)
        begin(folder)
        assert steps[-4:] == [
            ("pwrite", f".{JOURNAL}.tmp"),
            ("fsync", f".{JOURNAL}.tmp"),
            ("replace", f".{JOURNAL}.tmp"),
            ("fsync", tmp_path.name),
        ]
        folder.commit([sample(0)])
        steps.clear()
        folder.commit([sample(1), sample(2)])
    temporary = [f".{case_file(sample(number).id)}.tmp" for number in (1, 2)]
    assert steps == [
        ("pwrite", temporary[0]),
        ("pwrite", temporary[1]),
        ("fsync", temporary[0]),
        ("fsync", temporary[1]),
        ("replace", temporary[0]),
        ("replace", temporary[1]),
        ("fsync", "cases"),
        ("pwrite", JOURNAL),
        ("fsync", JOURNAL),
    ]


def test_results_of_an_earlier_run(tmp_path: Path) -> None:
    batch(tmp_path, 0, 1, 2)
    with BatchFolder.open(tmp_path) as folder:
        earlier = folder.newest()
        begin(folder)
        assert folder.done() == []
        folder.keep([earlier[sample(1).id]])
        again = sample(2, "again")
        folder.commit([again])
        folder.commit([again])
        assert [(done.number, done.kept) for done in folder.done()] == [(1, True), (2, False)]
        found = folder.newest()
        assert {done.number for done in found.values()} == {0, 1, 2}
        assert folder.result(found[again.id]).log == "again"


def test_a_line_that_is_torn_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # some hundred of them take seconds
    path = batch(tmp_path / "batch", 0, 1) / JOURNAL
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    start = len(whole) - len(last)
    torn = tmp_path / JOURNAL
    for cut in range(start, len(whole)):
        torn.write_bytes(whole[:cut])
        journal = Journal(torn, writable=True)
        assert journal.ignored == (cut > start)
        journal.append([batches.ended()])
        journal.close()
        assert torn.read_bytes() == whole[:start] + encoding.line(batches.ended())
    path.write_bytes(whole[:-1])
    with BatchFolder.open(path.parent) as folder:
        assert folder.ignored == 1
        assert folder.newest().keys() == {sample(0).id}
        assert len(folder.done()) == 1
        folder.commit([sample(1)])
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda line: line.replace(b'"case"', b'"cas\xff"'), id="not-utf-8"),
        pytest.param(lambda line: line.replace(b'"number":1', b'"number":x'), id="not-json"),
        pytest.param(lambda line: line.replace(b'"number":1', b'"nomber":1'), id="unknown-key"),
        pytest.param(lambda line: line.replace(b'"verified"', b'"verifled"'), id="no-verdict"),
        pytest.param(lambda line: b"\0" * len(line), id="zeros"),
        pytest.param(lambda line: b'{"a":' * 100_000, id="deep"),
        pytest.param(lambda line: b"", id="blank"),
        pytest.param(lambda line: line[:100] + b"\n" + line[100:], id="broken-in-two"),
    ],
)
def test_a_damaged_line_costs_its_case_alone(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = batch(tmp_path, 0, 1, 2) / JOURNAL
    lines = path.read_bytes().splitlines()
    lines[2] = damage(lines[2])
    path.write_bytes(b"\n".join(lines) + b"\n")
    with BatchFolder.open(tmp_path) as folder:
        assert folder.ignored == lines[2].count(b"\n") + 1
        assert {done.number for done in folder.newest().values()} == {0, 2}
        assert [done.number for done in folder.done()] == [0, 2]
        folder.commit([sample(1)])
        assert {done.number for done in folder.newest().values()} == {0, 1, 2}


def test_results_of_a_start_that_is_damaged_belong_to_no_batch(tmp_path: Path) -> None:
    batch(batch(tmp_path, 0), 1)
    path = tmp_path / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"total":100', b'"total":none')
    path.write_bytes(b"".join(lines))
    with BatchFolder.open(tmp_path) as folder:
        for read in (folder.begun, folder.done, folder.ended):
            with pytest.raises(StorageError, match="the last batch began cannot be read") as caught:
                read()
            assert "--resume" in caught.value.mend
        assert {done.number for done in folder.newest().values()} == {0, 1}
        begin(folder)
        assert folder.begun().total == 100
        assert folder.done() == []


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [flip, Path.unlink, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("part", ["cases", "builds", "devices", "specs", "sources"])
def test_a_damaged_file_is_told_and_written_anew(
    part: str, harm: Callable[[Path], None], tmp_path: Path
) -> None:
    batch(tmp_path, 0)
    (path,) = (tmp_path / part).iterdir()
    harm(path)
    with BatchFolder.open(tmp_path) as folder:
        (done,) = folder.done()
        read: dict[str, Callable[[], object]] = {
            "cases": lambda: folder.result(done),
            "builds": lambda: folder.build(done.build),
            "devices": lambda: folder.device(done.device),
            "specs": lambda: folder.spec(path.stem),
            "sources": lambda: folder.source(path.name),
        }
        with pytest.raises(
            StorageError, match=r"is damaged|cannot be read: No such file"
        ) as caught:
            read[part]()
        assert caught.value.where is not None
        assert caught.value.where.file == path
        # Specs and sources come with the next start anyway.
        assert bool(folder.newest()) == (part in {"specs", "sources"})
        begin(folder)
        folder.commit([sample(0)])
        (done,) = folder.done()
        read[part]()
        assert folder.newest() == {done.id: done}


def test_a_file_that_is_newer_than_its_line_is_no_result(tmp_path: Path) -> None:
    """Killed between the file and its line: what the new result was run from is not known."""
    batch(tmp_path, 0, 1)
    (tmp_path / "cases" / case_file(sample(1).id)).write_bytes(sample(1, "newer").reply.result)
    assert newest(tmp_path) == {0}


def test_a_result_in_the_file_of_another_case(tmp_path: Path) -> None:
    with BatchFolder.open(batch(tmp_path, 0, 1)) as folder:
        first, second = folder.done()
        lie = msgspec.structs.replace(first, file=second.file, sha256=second.sha256)
        folder.keep([lie])
        assert folder.newest().keys() == {second.id}
        with pytest.raises(StorageError, match="not the file that the journal tells of"):
            folder.result(lie)


def test_what_is_there_is_not_written_again(tmp_path: Path) -> None:
    batch(tmp_path, 0)
    parts = ("builds", "devices", "specs", "sources")
    before = {path: path.stat().st_ino for part in parts for path in (tmp_path / part).iterdir()}
    assert len(before) == 4
    batch(tmp_path, 1, 2)
    after = {path: path.stat().st_ino for part in parts for path in (tmp_path / part).iterdir()}
    assert after == before


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "A", "a" * 81, "a\n", ".", "\x1b[2J"])
def test_names_that_are_none(name: str, tmp_path: Path) -> None:
    item = sample(1)
    info = next(iter(item.reply.builds.values()))
    device = next(iter(item.reply.devices.values()))
    with BatchFolder.open(batch(tmp_path / "out", 0)) as folder:
        for change in ({"builds": {name: info}}, {"devices": {name: device}}):
            reply = msgspec.structs.replace(item.reply, **change)
            with pytest.raises(StorageError, match="is no name of a file there") as caught:
                folder.commit([msgspec.structs.replace(item, reply=reply)])
            assert str(caught.value).isprintable()
        for read in (folder.build, folder.device, folder.spec, folder.source):
            with pytest.raises(StorageError, match="is no name of a file there"):
                read(name)
        assert {done.number for done in folder.newest().values()} == {0}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_id_of_bytes_that_are_no_text_has_one_file(tmp_path: Path) -> None:
    item = msgspec.structs.replace(sample(0), id="caf\udce9/x@cpu")
    with BatchFolder.open(tmp_path) as folder:
        begin(folder)
        folder.commit([item])
        (done,) = folder.done()
        assert done.id == "caf\\udce9/x@cpu"
        assert folder.result(done).record.shape == {"m": 0}


def test_a_reply_without_a_result_is_refused(tmp_path: Path) -> None:
    empty = msgspec.structs.replace(sample(1), reply=Reply(number=1, fresh=True))
    with BatchFolder.open(batch(tmp_path, 0)) as folder:
        with pytest.raises(ValueError, match="has no result"):
            folder.commit([sample(2), empty])
        assert [done.number for done in folder.done()] == [0]


def test_entries_are_what_they_were(tmp_path: Path) -> None:
    """A line of the journal is strict JSON with sorted keys, and names its kind."""
    batch(tmp_path, 0)
    first, second = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    assert b'"kind":"begun"' in first
    assert encoding.line(msgspec.json.decode(second, type=Done)) == second
