"""The file of a batch: what was written is read back or refused, and never half of it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests import batch_samples as batches
from tests import evidence_samples as samples
from tests.batch_crash import begin, sample
from tokitai_cli.batch.store.database import Store
from tokitai_cli.batch.store.disk import FILE
from tokitai_cli.core.errors import StorageError
from tokitai_cli.core.model.batch_record import CaseResult, Reply
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.evidence import encoding


def batch(path: Path, *numbers: int) -> Path:
    """A batch of these cases that has not ended; returns the folder's path."""
    with Store.open(path) as store:
        begin(store)
        store.commit(sample(number) for number in numbers)
    return path


def newest(path: Path) -> set[int]:
    with Store.open(path) as store:
        return {done.number for done in store.newest()}


def change(path: Path, statement: str, *values: object) -> None:
    """Damage a batch by an SQL statement."""
    with contextlib.closing(sqlite3.connect(path / FILE)) as database, database:
        assert database.execute(statement, values).rowcount


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
    with Store.open(tmp_path / "a" / "b") as store:
        store.begin(start, {digest: text}, {samples.SOURCE: batches.SOURCE})
        store.commit(items)
        assert store.ended() is None
        store.end(batches.ended("interrupted", notes=["one", "two"]))
    with Store.read(tmp_path / "a" / "b") as store:
        assert store.begun() == start
        assert store.ended() == batches.ended("interrupted", notes=["one", "two"])
        assert [*store.done()] == [*store.newest()] == [done for done, _ in items]
        first, result = store.result(4)
        second, _ = store.result(5)
        assert (first.verdict, first.seconds, first.kept) == (Verdict.REFUTED, 0.25, False)
        assert list(first.shape) == ["m", "n", "k"]
        reply = items[0][1]
        assert result == msgspec.json.decode(reply.result, type=CaseResult)
        assert result.record.outputs[0].checks[0].worst[0].got == "nan"
        assert result.log == "\x1b[31mred\u202e\\udcff\n"
        assert store.build(first.build) == reply.builds[first.build]
        assert store.device(second.device_record) == reply.devices[second.device_record]
        assert store.spec(digest) == text
        assert store.source(samples.SOURCE) == batches.SOURCE
        assert (second.build, store.damaged) == ("", 0)


def test_a_person_finds_the_parts_of_a_case_in_columns(tmp_path: Path) -> None:
    batch(tmp_path, 3)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as database:
        names = 'name, variant, shape, profile, seed, device, "group", verdict'
        (row,) = database.execute(f"SELECT {names} FROM result")
    shape = '{"m":3}'
    group = "gemm-bw/grad-a/m=3@cpu"
    assert row == ("gemm-bw", "grad-a", shape, "normal", 0, "cpu", group, "verified")


def test_results_of_an_earlier_run(tmp_path: Path) -> None:
    batch(tmp_path, 0, 1, 2)
    with Store.open(tmp_path) as store:
        earlier = {done.number: done for done in store.newest()}
        begin(store)
        assert [*store.done()] == []
        store.keep([msgspec.structs.replace(earlier[1], number=7)])
        again = sample(2, "again")
        store.commit([again])
        store.commit([again])
        assert [(done.number, done.kept) for done in store.done()] == [(2, False), (7, True)]
        assert {done.number for done in store.newest()} == {0, 7, 2}
        assert store.result(2)[1].log == "again"
        assert store.result(7)[1].record.shape == {"m": 1}
        with pytest.raises(StorageError, match="case 0 is damaged: it is not there"):
            store.result(0)


def half_written(store: Store) -> None:
    with store.writing():
        store.commit([sample(1)])
        store.end(batches.ended())
        store.commit([(sample(3)[0], Reply(number=3))])


def test_all_that_is_written_together_is_there_or_nothing(tmp_path: Path) -> None:
    with Store.open(batch(tmp_path, 0)) as store:
        with pytest.raises(ValueError, match="has no result"):
            half_written(store)
        assert [done.number for done in store.done()] == [0]
        assert store.ended() is None
        store.commit([sample(2)])
    assert newest(tmp_path) == {0, 2}


HARMS: dict[str, str] = {
    "data": "UPDATE result SET data = replace(data, '\"m\":1', '\"m\":7') WHERE number = 1",
    "not-json": "UPDATE result SET shape = 'm' WHERE number = 1",
    "null": "UPDATE result SET seed = NULL WHERE number = 1",
    "verdict": "UPDATE result SET verdict = 'refuted' WHERE number = 1",
    "no-verdict": "UPDATE result SET verdict = 'verifled' WHERE number = 1",
    "group": "UPDATE result SET \"group\" = 'x' WHERE number = 1",
    "other-case": "UPDATE result SET (data, seal) = (SELECT data, seal FROM result WHERE number = 0) "
    "WHERE number = 1",
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_result_costs_its_case_alone(harm: str, tmp_path: Path) -> None:
    change(batch(tmp_path, 0, 1, 2), HARMS[harm])
    with Store.open(tmp_path) as store:
        assert {done.number for done in store.newest()} == {0, 2}
        assert store.damaged == 1
        with pytest.raises(StorageError, match="is damaged") as caught:
            store.result(1)
        assert "--resume" in caught.value.hint
        store.commit([sample(1)])
    assert newest(tmp_path) == {0, 1, 2}


@pytest.mark.parametrize("harm", ["UPDATE record SET data = data || 'x'", "DELETE FROM record"])
@pytest.mark.parametrize("kind", ["build", "device", "spec", "source"])
def test_a_damaged_record_is_told_and_written_anew(kind: str, harm: str, tmp_path: Path) -> None:
    change(batch(tmp_path, 0), f"{harm} WHERE kind = ?", kind)
    with Store.open(tmp_path) as store:
        (done,) = store.done()
        read: dict[str, Callable[[], object]] = {
            "build": lambda: store.build(done.build),
            "device": lambda: store.device(done.device_record),
            "spec": lambda: store.spec(batches.digest_of(batches.SPEC_TEXT)),
            "source": lambda: store.source(samples.SOURCE),
        }
        with pytest.raises(StorageError, match=f"{kind} .* is damaged: it"):
            read[kind]()
        # Specs and sources come with the next start anyway.
        assert bool([*store.newest()]) == (kind in {"spec", "source"})
        begin(store)
        store.commit([sample(0)])
        read[kind]()
        assert [done.number for done in store.newest()] == [0]


def test_a_start_that_is_damaged_is_told(tmp_path: Path) -> None:
    change(batch(tmp_path, 0), "UPDATE run SET begun = '{}'")
    with Store.open(tmp_path) as store:
        with pytest.raises(StorageError, match="the last start is damaged"):
            store.begun()
        assert [done.number for done in store.newest()] == [0]
        begin(store)
        assert store.begun().total == 100


def test_the_first_record_of_a_build_stays(tmp_path: Path) -> None:
    done, reply = sample(1)
    info = msgspec.structs.replace(reply.builds[done.build], seconds=0.0, cached=True)
    with Store.open(batch(tmp_path, 0)) as store:
        store.commit([(done, msgspec.structs.replace(reply, builds={done.build: info}))])
        assert store.build(done.build).seconds == 0.5


def test_an_id_of_bytes_that_are_no_text_is_written_as_escapes(tmp_path: Path) -> None:
    done, reply = sample(0)
    with Store.open(tmp_path) as store:
        begin(store)
        store.commit([(msgspec.structs.replace(done, id="caf\udce9/x@cpu"), reply)])
        (found,) = store.done()
        assert found.id == "caf\\udce9/x@cpu"
        assert store.result(0)[1].record.shape == {"m": 0}


def test_a_reply_without_a_result_is_refused(tmp_path: Path) -> None:
    done, _ = sample(1)
    with Store.open(batch(tmp_path, 0)) as store:
        with pytest.raises(ValueError, match="has no result"):
            store.commit([sample(2), (done, Reply(number=1, fresh=True))])
        assert [done.number for done in store.done()] == [0]


def test_results_are_strict_json(tmp_path: Path) -> None:
    _, reply = sample(0)
    with contextlib.closing(sqlite3.connect(batch(tmp_path, 0) / FILE)) as database:
        ((data,),) = database.execute("SELECT data FROM result")
    assert data == reply.result == encoding.line(msgspec.json.decode(data, type=CaseResult))
