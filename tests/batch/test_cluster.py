"""Batches on Dask: what may be connected to, what travels, and what becomes of cases on the way."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import msgspec
import psutil  # type: ignore[import-untyped]
import pytest

from tests.cluster_processes import (
    Processes,
    collected,
    drive,
    processes,
    tls_files,
    waited,
    waiting,
)
from tests.spec_example import example, write_example
from tests.support import slow
from tokitai_cli import spec
from tokitai_cli.batch.cluster import TlsFiles, dask_worker, open_executor, spec_archive
from tokitai_cli.batch.cluster.client import within
from tokitai_cli.batch.cluster.placement import Bundle, Bundles, Loads, Offer, offers
from tokitai_cli.batch.cluster.spec_archive import SpecArchive
from tokitai_cli.batch.select.collected import Collected
from tokitai_cli.batch.work.queue import TaskQueue
from tokitai_cli.batch.work.serve import CaseServer
from tokitai_cli.core import resources
from tokitai_cli.core.errors import ExecutorError, SpecError, StorageError, UsageError
from tokitai_cli.core.model.batch_record import CaseResult, Reply, Task
from tokitai_cli.core.model.events import Event, Note
from tokitai_cli.core.model.verdict import Verdict

LOCAL = "tcp://127.0.0.1:9"
PROFILE = """\
jobqueue:
  slurm:
    cores: 1
    processes: 1
    memory: 1GB
    death-timeout: 60
    interface: lo
    shared-temp-directory: {folder}
    log-directory: {folder}
    local-directory: {folder}
"""


@pytest.fixture(autouse=True)
def own_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives of a test lie in a folder of its own, in this process and in those that it starts."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A scheduler with two workers, of which one offers cuda, and the folder of their build caches.

    For tests that end none of them.
    """
    folder = tmp_path_factory.mktemp("pair")
    with processes(folder) as running:
        address = running.scheduler()
        running.worker(address, env={"TOKITAI_CACHE": str(folder / "one")})
        cuda = {"TOKITAI_CACHE": str(folder / "two"), "PATH": "/usr/bin:/bin"}
        running.worker(address, "--resources", "cuda=1", env=cuda)
        yield address, folder


@pytest.fixture
def small(tmp_path: Path) -> Collected:
    write_example(tmp_path / "specs")
    return collected(tmp_path / "specs")


def gemm(seeds: int = 1, device: str = "cpu") -> Collected:
    return collected(resources.specs_dir(), seeds=seeds, device=device, ops=["gemm-bw"])


def results(replies: list[Reply]) -> dict[int, CaseResult]:
    """Results by the number of their case, each of which was answered once."""
    found = {reply.number: msgspec.json.decode(reply.result, type=CaseResult) for reply in replies}
    assert len(found) == len(replies)
    return found


# What may be connected to


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("tcp://192.0.2.1:8786", "not on loopback and not encrypted.*pickles"),
        ("tcp://0.0.0.0:8786", "not on loopback"),
        ("tcp://[2001:db8::1]:8786", "not on loopback"),
        ("tcp://localhost.example:8786", "not on loopback"),
        ("tcp://127.0.0.1.example:8786", "not on loopback"),
        ("tls://192.0.2.1:8786", "needs an authority, a certificate and a key"),
        ("tls://127.0.0.1:8786", "needs an authority, a certificate and a key"),
        ("127.0.0.1:8786", "not the address of a scheduler"),
        ("tcp://127.0.0.1", "not the address of a scheduler"),
        ("tcp://127.0.0.1:port", "not the address of a scheduler"),
        ("tcp://127.0.0.1:1@192.0.2.1:2", "not the address of a scheduler"),
        ("inproc://127.0.0.1:1", "not the address of a scheduler"),
        ("tcp://127.0.0.1:1/path", "not the address of a scheduler"),
    ],
)
def test_an_address_that_is_not_safe_is_refused(
    address: str, reason: str, small: Collected
) -> None:
    with pytest.raises(UsageError, match=reason):
        open_executor(small, scheduler=address, tls=None)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "tcp://127.8.8.8:9", "tcp://[::1]:9"])
def test_loopback_needs_no_tls(address: str, small: Collected) -> None:
    assert open_executor(small, scheduler=address, tls=None).workers == 0


@pytest.mark.parametrize(
    ("found", "refused"), [(["127.0.0.1", "::1"], False), (["127.0.0.1", "192.0.2.1"], True)]
)
def test_localhost_counts_where_all_that_it_means_is_loopback(
    found: list[str], refused: bool, small: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in found]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: entries)
    if refused:
        with pytest.raises(UsageError, match="not on loopback"):
            open_executor(small, scheduler="tcp://localhost:9", tls=None)
    else:
        open_executor(small, scheduler="tcp://localhost:9", tls=None)


def test_a_refused_address_is_not_connected_to(small: Collected) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listening:
        listening.setblocking(False)
        with pytest.raises(UsageError, match="refused"):
            open_executor(small, scheduler=f"tcp://0.0.0.0:{listening.getsockname()[1]}", tls=None)
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_tls_files_must_be_there_and_be_of_use(small: Collected, tmp_path: Path) -> None:
    files = tls_files(tmp_path / "tls")
    with pytest.raises(UsageError, match="would not use the TLS files"):
        open_executor(small, scheduler=LOCAL, tls=files)
    missing = TlsFiles(files.ca, tmp_path / "nowhere.pem", files.key)
    with pytest.raises(UsageError, match=r"--tls-cert .*nowhere\.pem: not a readable file"):
        open_executor(small, scheduler="tls://192.0.2.1:9", tls=missing)
    open_executor(small, scheduler="tls://192.0.2.1:9", tls=files)


def test_credentials_of_dasks_own_configuration_are_taken(small: Collected, tmp_path: Path) -> None:
    files = tls_files(tmp_path / "tls")
    keys = {"ca-file": files.ca, "client.cert": files.cert, "client.key": files.key}
    with dask.config.set({f"distributed.comm.tls.{key}": str(path) for key, path in keys.items()}):
        open_executor(small, scheduler="tls://192.0.2.1:9", tls=None)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "either --scheduler or --cluster"),
        ({"scheduler": LOCAL, "cluster_file": Path("x.yaml")}, "either --scheduler or --cluster"),
        ({"scheduler": LOCAL, "jobs": 3}, "--jobs needs --cluster"),
        ({"cluster_file": Path("none.yaml"), "jobs": 1}, "no such file"),
        ({"cluster_file": Path("none.yaml"), "jobs": 0}, "at least 1"),
    ],
)
def test_options_that_do_not_go_together(
    options: dict[str, object], reason: str, small: Collected
) -> None:
    with pytest.raises(UsageError, match=reason):
        open_executor(small, tls=None, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("jobqueue: [", "while parsing|malformed"),
        ("", "one section"),
        ("slurm: {cores: 1}", "one section"),
        ("jobqueue: {slurm: {cores: 1}, pbs: {cores: 1}}", "one section"),
        ("jobqueue: {slrm: {cores: 1}}", "unknown system .did you mean slurm"),
        ("jobqueue: {local: {cores: 1}}", "unknown system"),
        ("jobqueue: {slurm: }", "options are needed"),
        ("jobqueue: {slurm: {core: 1}}", "slurm.core: unknown option .did you mean cores"),
        ("jobqueue: {slurm: {scheduler-options: {protocol: 'tcp://'}}}", "support only TLS"),
        ("jobqueue: {slurm: {scheduler_options: {security: null}}}", "support only TLS"),
        ("jobqueue: {slurm: {worker-extra-args: ['--protocol=tcp']}}", "support only TLS"),
        ("jobqueue: {slurm: {worker-extra-args: ['--tls-key', x]}}", "support only TLS"),
        ("jobqueue: {slurm: {cores: 1, memory: 1GB}}", "shared-temp-directory"),
    ],
)
def test_a_profile_that_cannot_be_used(
    text: str, reason: str, small: Collected, tmp_path: Path, fake_slurm: Path
) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(text)
    with pytest.raises(UsageError, match=reason):
        open_executor(small, cluster_file=profile, jobs=1, tls=None)


def test_a_batch_system_that_is_not_here(small: Collected, tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE.format(folder=tmp_path))
    with pytest.raises(UsageError, match="there is no sbatch"):
        open_executor(small, cluster_file=profile, jobs=1, tls=None)


# What travels


def layout(root: Path) -> Path:
    """A spec with a linked source, nested headers, one that is only asked for, and an oracle."""
    kernel = '#include "deep/one.h"\n#include "gone.h"\n' + example("vector_add.hip")
    path = write_example(root / "a" / "specs", kernel=kernel)
    real = root / "b" / "kernels"
    (real / "deep").mkdir(parents=True)
    source = root / "a" / "specs" / "vector_add.hip"
    source.rename(real / "vector_add.hip")
    source.symlink_to(real / "vector_add.hip")
    (real / "deep" / "one.h").write_text(
        '#include "../two.h"\n#if __has_include("three.h")\n#endif\n'
    )
    (real / "two.h").write_text("// two\n")
    (real / "deep" / "three.h").write_text("// three\n")
    (real / "unused.h").write_text("// not included\n")
    return path


def test_a_archive_has_all_that_a_spec_is_made_of_and_nothing_else(tmp_path: Path) -> None:
    first, second = (spec_archive.pack(spec.load(layout(tmp_path / one))) for one in ("x", "y"))
    assert (first.digest, first.data, first.spec) == (second.digest, second.data, second.spec)
    held = msgspec.msgpack.decode(first.data, type=SpecArchive)
    kernels = "b/kernels/"
    assert sorted(held.files) == [
        "a/specs/oracle.py",
        "a/specs/spec.yaml",
        kernels + "deep/one.h",
        kernels + "deep/three.h",
        kernels + "two.h",
        kernels + "vector_add.hip",
    ]
    assert held.links == {"a/specs/vector_add.hip": kernels + "vector_add.hip"}


def test_what_is_unpacked_is_what_was_packed(tmp_path: Path) -> None:
    loaded = spec.load(layout(tmp_path / "x"))
    packed = spec_archive.pack(loaded)
    place = spec_archive.unpack(packed.data)
    assert place == spec_archive.folder() / packed.digest
    assert spec.load(place / packed.spec).digest == loaded.digest
    source = (place / packed.spec).parent / "vector_add.hip"
    assert source.resolve() == place / "b" / "kernels" / "vector_add.hip"
    assert source.read_bytes() == (loaded.folder / "vector_add.hip").read_bytes()
    assert stat.S_IMODE(spec_archive.folder().stat().st_mode) == 0o700


@pytest.mark.parametrize("op", [name for name, _ in spec.builtin()])
def test_built_in_specs_travel_with_their_kernels(op: str) -> None:
    loaded = spec.load(spec.find(op))
    packed = spec_archive.pack(loaded)
    there = spec.load(spec_archive.unpack(packed.data) / packed.spec)
    for name, variant in loaded.spec.variants.items():
        assert there.spec.variants[name] == variant
        source = (there.folder / variant.source).read_bytes()
        assert source == (loaded.folder / variant.source).read_bytes()


def damage_content(place: Path) -> None:
    (place / "vector_add.hip").write_text("another")


def damage_extra(place: Path) -> None:
    (place / "hip").mkdir()
    (place / "hip" / "more.h").write_text("")


def damage_missing(place: Path) -> None:
    (place / "oracle.py").unlink()


def damage_link(place: Path) -> None:
    (place / "oracle.py").rename(place.parent / "elsewhere.py")
    (place / "oracle.py").symlink_to(place.parent / "elsewhere.py")


def damage_all(place: Path) -> None:
    place.rename(place.parent / "moved")
    place.write_text("a file")


@pytest.mark.parametrize(
    "damage", [damage_content, damage_extra, damage_missing, damage_link, damage_all]
)
def test_a_damaged_archive_is_made_anew(tmp_path: Path, damage: object) -> None:
    packed = spec_archive.pack(spec.load(write_example(tmp_path / "specs")))
    place = spec_archive.unpack(packed.data)
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    stamps = spec_archive.stamps(place)
    damage(place)  # type: ignore[operator]
    assert spec_archive.stamps(place) != stamps
    assert spec_archive.unpack(packed.data) == place
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "", "a//b", "./a", "a\0b"])
@pytest.mark.parametrize("where", ["file", "link", "target", "spec"])
def test_a_archive_cannot_name_what_is_outside(name: str, where: str) -> None:
    files = {"s.yaml": b"x", **({name: b"x"} if where == "file" else {})}
    links = {"link": {name: "s.yaml"}, "target": {"l": name}}.get(where, {})
    data = msgspec.msgpack.encode(SpecArchive(name if where == "spec" else "s.yaml", files, links))
    with pytest.raises(StorageError, match="outside of itself"):
        spec_archive.unpack(data)
    assert list(spec_archive.folder().iterdir()) == []


@pytest.mark.parametrize(
    ("files", "links"),
    [
        ({"s": b"", "l/x": b""}, {"l": "s"}),
        ({"s": b"", "s/x": b""}, {}),
        ({"s": b""}, {"l": "missing"}),
        ({"s": b"", "l": b""}, {"l": "s"}),
    ],
)
def test_a_archive_that_contradicts_itself_is_refused(
    files: dict[str, bytes], links: dict[str, str]
) -> None:
    with pytest.raises(StorageError, match="an archive"):
        spec_archive.unpack(msgspec.msgpack.encode(SpecArchive("s", files, links)))


def test_archives_lie_only_in_a_folder_of_this_user_alone(tmp_path: Path) -> None:
    data = spec_archive.pack(spec.load(write_example(tmp_path / "specs"))).data
    base = spec_archive.folder()
    base.chmod(0o755)
    with pytest.raises(StorageError, match="not a folder that belongs only to this user"):
        spec_archive.unpack(data)
    base.rmdir()
    base.symlink_to(tmp_path)
    with pytest.raises(StorageError, match="not a folder that belongs only to this user"):
        spec_archive.unpack(data)


def test_what_cannot_travel_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec_archive, "MAX_BYTES", 1 << 20)
    text = example("spec.yaml")
    absolute = text.replace("source: ", f"source: {tmp_path}/one/")
    with pytest.raises(UsageError, match="absolute path"):
        spec_archive.pack(spec.load(write_example(tmp_path / "one", spec=absolute)))
    through = write_example(tmp_path / "two", spec=text.replace("source: ", "source: link/../"))
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "two" / "link").symlink_to(tmp_path / "far" / "away")
    (tmp_path / "two" / "vector_add.hip").rename(tmp_path / "far" / "vector_add.hip")
    with pytest.raises(UsageError, match="through a symbolic link"):
        spec_archive.pack(spec.load(through))
    large = write_example(tmp_path / "three", kernel="//" + "x" * spec_archive.MAX_BYTES)
    with pytest.raises(UsageError, match="exceed the 1 MiB"):
        spec_archive.pack(spec.load(large))
    loaded = spec.load(write_example(tmp_path / "four"))
    loaded.path.write_text("# changed\n" + text)
    with pytest.raises(SpecError, match="was changed"):
        spec_archive.pack(loaded)


# Who gets what


def test_resources_say_how_many_cases_of_a_device_a_worker_takes() -> None:
    told: dict[str, dict[str, Any]] = {
        "a": {"nthreads": 4, "resources": {"cuda": 2, "rocm": 9}},
        "b": {"nthreads": 2},
    }
    found = offers(told)
    assert [found["a"].slots(device) for device in ("cpu", "cuda", "rocm", "gfx")] == [4, 2, 4, 0]
    assert found["b"] == Offer(2, {})
    loads = Loads()
    for key in ("x", "y"):
        assert loads.fits("a", found["a"], "cuda", 1)
        loads.add("a", key, "cuda")
    assert not loads.fits("a", found["a"], "cuda", 1)
    assert loads.fits("a", found["a"], "cuda", 2)
    assert loads.fits("a", found["a"], "cpu", 1)
    assert loads.left_by(["b"]) == {"a": ["x", "y"]}
    loads.remove("a", "x")
    assert loads.left_by([]) == {"a": ["y"]}


def numbered(number: int, seconds: float = 0.0) -> Reply:
    return Reply(number=number, seconds=seconds)


@pytest.mark.parametrize(
    ("seconds", "waiting_cases", "threads", "size"),
    [
        (0.01, 999, 2, 25),
        (0.0, 999, 2, 32),
        (0.1, 999, 2, 2),
        (9.0, 999, 2, 1),
        (0.01, 40, 2, 5),
        (0.01, 40, 800, 1),
        (1.0, 9600, 800, 3),
        (3.0, 9600, 800, 2),
    ],
)
def test_short_cases_travel_in_bundles(
    small: Collected, seconds: float, waiting_cases: int, threads: int, size: int
) -> None:
    task = small.cases[0].task()
    tasks = [msgspec.structs.replace(task, number=number) for number in range(waiting_cases + 2)]
    queue = TaskQueue((one, 1.0) for one in tasks)
    bundles = Bundles()
    first = queue.take()
    assert first is not None
    assert bundles.take(queue, first, threads, gpu=False) == (first,)  # nothing is known yet
    bundles.answered(Bundle("key", "address", (first,)), [numbered(first.number, seconds)])
    second = queue.take()
    assert second is not None
    taken = bundles.take(queue, second, threads, gpu=False)
    assert len(taken) == size
    assert len(queue) == waiting_cases + 1 - size
    assert len({one.number for one in taken} | {first.number}) == size + 1


def test_cases_of_a_lost_bundle_are_tried_one_by_one(small: Collected) -> None:
    queue = waiting(small)
    tasks = [task for _ in range(3) if (task := queue.take()) is not None]
    bundles = Bundles()

    def lost(task: Task, times: int) -> Reply:
        return msgspec.structs.replace(numbered(task.number), reason=f"lost {times}")

    bundles.answered(Bundle("a", "address", (tasks[0],)), [numbered(tasks[0].number)])
    before = len(queue)
    assert bundles.failed(Bundle("b", "address", tuple(tasks)), queue, 1, lost) == []
    assert len(queue) == before + 3
    again = {task.number for task in tasks}
    found: list[Reply] = []
    while again and (task := queue.take()) is not None:
        bundle = bundles.take(queue, task, 1, gpu=False)
        if task.number in again:
            assert bundle == (task,)
            found += bundles.failed(Bundle("c", "address", bundle), queue, 1, lost)
            again -= {reply.number for reply in found}
        else:
            assert not again & {one.number for one in bundle}
    assert [reply.reason for reply in found] == ["lost 2"] * 3


# On real schedulers and workers


def test_verdicts_are_those_of_a_local_worker_and_every_worker_has_its_own_cache(
    pair: tuple[str, Path], small: Collected
) -> None:
    cases = small
    address, folder = pair
    with open_executor(cases, scheduler=address, tls=None) as executor:
        while executor.workers < 2:
            executor.collect(0.1)
        replies = drive(executor, cases)
    found = results(replies)
    with CaseServer(cases.setup) as local:
        wanted = results([local.serve(case.task()) for case in cases.cases])
    assert found.keys() == wanted.keys()
    for number, want in wanted.items():
        got = found[number].record
        # The sources lie elsewhere on a worker, and so the build has another key.
        assert msgspec.structs.replace(got, build=want.record.build) == want.record
    for name in ("one", "two"):
        assert list((folder / name).rglob("manifest*")), f"worker {name} built nothing"


@pytest.mark.slow
def test_cases_of_a_worker_that_is_killed_run_elsewhere_once(started: Processes) -> None:
    cases = gemm(seeds=5)
    address = started.scheduler()
    victim, _ = (started.worker(address) for _ in range(2))

    def kill(count: int) -> None:
        if count >= 10 and victim.poll() is None:
            os.killpg(victim.pid, signal.SIGKILL)
            victim.wait()

    with open_executor(cases, scheduler=address, tls=None) as executor:
        while executor.workers < 2:
            executor.collect(0.1)
        replies = drive(executor, cases, kill)
    assert victim.returncode == -signal.SIGKILL
    found = results(replies)
    assert sorted(found) == [case.number for case in cases.cases]
    assert {result.record.verdict for result in found.values()} == {Verdict.VERIFIED}


@pytest.mark.slow
def test_a_case_that_takes_every_worker_down_is_lost_and_the_others_are_not(
    started: Processes, tmp_path: Path
) -> None:
    write_example(tmp_path / "good")
    poison = (  # of the process that forks for it, and of the worker above that
        "import os\nfrom pathlib import Path\n"
        "stat = Path(f'/proc/{os.getppid()}/stat').read_text()\n"
        "os.kill(int(stat.rpartition(')')[2].split()[1]), 9)\n"
    ) + example("oracle.py")
    text = example("spec.yaml").replace("op: vector-add", "op: vector-poison")
    text = "".join(line for line in text.splitlines(True) if "{n: 25" not in line)
    write_example(tmp_path / "poison", oracle=poison, spec=text)
    cases = collected(tmp_path)
    address = started.scheduler()
    started.worker(address, "--nanny")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        open_executor(cases, scheduler=address, tls=None) as executor,
    ):
        found = results(drive(executor, cases))
    by_op = {
        op: {result.record.verdict for result in found.values() if result.record.op == op}
        for op in ("vector-add", "vector-poison")
    }
    assert by_op == {
        "vector-add": {Verdict.VERIFIED},
        "vector-poison": {Verdict.INTERNAL_ERROR},
    }
    reasons = [one.record.reason for one in found.values() if one.record.op == "vector-poison"]
    assert all("was lost while it ran this case (attempts: 1)" in reason for reason in reasons)


def test_a_device_that_no_worker_offers_is_told_and_ends_the_batch(
    pair: tuple[str, Path],
) -> None:
    cases = gemm(device="rocm")
    notes: list[Event] = []
    queue = waiting(cases)
    with (
        open_executor(
            cases, scheduler=pair[0], tls=None, listener=notes.append, wait=6.0
        ) as executor,
        pytest.raises(
            ExecutorError, match=r"no worker offers rocm after 6 s .*--resources 'rocm=1'"
        ),
    ):
        drive(executor, cases, queue=queue)
    assert len(queue) == len(cases.cases)
    assert len(notes) == len(set(map(str, notes)))
    assert isinstance(notes[-1], Note)
    assert "no worker offers rocm" in notes[-1].text


def test_cases_of_a_gpu_go_to_the_worker_that_offers_it(pair: tuple[str, Path]) -> None:
    cases = gemm(device="cuda")
    with open_executor(cases, scheduler=pair[0], tls=None) as executor:
        while executor.workers < 2:
            executor.collect(0.1)
        queue = waiting(cases)
        executor.feed(queue)
        assert executor.running == 2  # one at work and one ahead, on one of the two workers
        found = results(drive(executor, cases, queue=queue))
    assert len(found) == len(cases.cases)
    assert Verdict.INTERNAL_ERROR not in {result.record.verdict for result in found.values()}


def test_without_any_worker_the_batch_ends_after_a_while(
    started: Processes, small: Collected
) -> None:
    address = started.scheduler()
    with (
        open_executor(small, scheduler=address, tls=None, wait=0.0) as executor,
        pytest.raises(ExecutorError, match="the scheduler has no workers"),
    ):
        drive(executor, small)


def test_no_scheduler_is_told(small: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokitai_cli.batch.cluster.client.CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        pytest.raises(ExecutorError, match=f"no Dask scheduler answers at tcp://127.0.0.1:{port}"),
        open_executor(small, scheduler=f"tcp://127.0.0.1:{port}", tls=None),
    ):
        pass


def test_a_worker_with_another_tool_is_refused(pair: tuple[str, Path], small: Collected) -> None:
    other = msgspec.structs.replace(
        small, setup=msgspec.structs.replace(small.setup, tool="0" * 64)
    )
    notes: list[Event] = []
    found = rf"no worker can be used.*on {socket.gethostname()} is tokitai .*not .*000000000000"
    with (
        open_executor(other, scheduler=pair[0], tls=None, listener=notes.append) as executor,
        pytest.raises(ExecutorError, match=found),
    ):
        drive(executor, other)
    assert "is excluded" in str(notes)


def test_a_worker_whose_tool_changed_refuses_the_task(small: Collected) -> None:
    setup = msgspec.structs.replace(small.setup, tool="0" * 64)
    tasks = msgspec.msgpack.encode([case.task() for case in small.cases])
    answer = dask_worker.run_tasks(tasks, setup=msgspec.msgpack.encode(setup), archive=b"")
    (reply,) = msgspec.msgpack.decode(answer, type=list[Reply])
    assert reply.result == b""
    assert "cannot be used: it has tokitai" in reply.refused


@pytest.mark.parametrize("who", ["scheduler", slow("worker")])
def test_where_the_tool_is_not_installed_is_told(
    started: Processes, small: Collected, tmp_path: Path, who: str
) -> None:
    package = tmp_path / "shadow" / "tokitai_cli"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('not here')")
    without = {"PYTHONPATH": str(package.parent)}
    address = started.scheduler(env=without if who == "scheduler" else None)
    started.worker(address, env=without if who == "worker" else None)
    with (
        open_executor(small, scheduler=address, tls=None) as executor,
        pytest.raises(ExecutorError, match="cannot load tokitai"),
    ):
        drive(executor, small)


def test_a_scheduler_that_dies_ends_the_batch_and_nothing_hangs(started: Processes) -> None:
    cases = gemm(seeds=5)
    address = started.scheduler()
    started.worker(address)

    def kill(count: int) -> None:
        if count:
            os.killpg(started.running[0].pid, signal.SIGKILL)

    with (
        pytest.raises(ExecutorError, match=r"connection to the scheduler was lost.*--resume"),
        open_executor(cases, scheduler=address, tls=None) as executor,
    ):
        drive(executor, cases, kill)


def test_tls_end_to_end_and_without_credentials_nothing(
    started: Processes, small: Collected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tls_files(tmp_path / "tls")
    words = ("--tls-ca-file", files.ca, "--tls-cert", files.cert, "--tls-key", files.key)
    address = started.scheduler(*words, "--protocol", "tls")
    started.worker(address, *words)
    assert address.startswith("tls://127.0.0.1:")
    with open_executor(small, scheduler=address, tls=files) as executor:
        found = results(drive(executor, small))
    assert {result.record.verdict for result in found.values()} == {Verdict.VERIFIED}
    waited(lambda: not kernels_of(started.running[1].pid))
    monkeypatch.setattr("tokitai_cli.batch.cluster.client.CONNECT_SECONDS", 2.0)
    strangers = tls_files(tmp_path / "strangers")
    with (
        pytest.raises(ExecutorError, match="no Dask scheduler answers"),
        open_executor(small, scheduler=address, tls=strangers),
    ):
        pass


def kernels_of(pid: int) -> list[str]:
    """Programs out of the build cache that a worker has running."""
    programs = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ends meanwhile
            programs.append(child.exe())
    return [program for program in programs if program.startswith(os.environ["TOKITAI_CACHE"])]


# Jobs of a batch system


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An sbatch that starts the script in the background, and an scancel that ends it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    sbatch = (
        f'#!/bin/sh\ncp "$1" {jobs}/script\nsetsid sh {jobs}/script > {jobs}/log 2>&1 &\n'
        f"touch {jobs}/$!\necho Submitted batch job $!\n"
    )
    scancel = f'#!/bin/sh\nkill -9 "-$1"; mv {jobs}/$1 {jobs}/cancelled-$1\n'
    for name, text in (("sbatch", sbatch), ("scancel", scancel)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    yield jobs
    for job in jobs.iterdir():
        if job.name.isdigit():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(job.name), signal.SIGKILL)


@pytest.mark.slow
def test_jobs_of_a_profile_serve_the_batch_over_tls_and_are_cancelled(
    small: Collected, tmp_path: Path, fake_slurm: Path
) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE.format(folder=tmp_path))
    with open_executor(small, cluster_file=profile, jobs=2, tls=None) as executor:
        found = results(drive(executor, small))
        script = (fake_slurm / "script").read_text()
    assert {result.record.verdict for result in found.values()} == {Verdict.VERIFIED}
    assert " tls://127.0.0.1:" in script
    assert "--tls-key " in script
    names = sorted(path.name for path in fake_slurm.iterdir())
    assert sum(name.startswith("cancelled-") for name in names) == 2
    assert dask.config.get("jobqueue.slurm.cores") is None
    assert not list(tmp_path.glob(".dask-jobqueue*")), "keys are left behind"


def test_a_job_that_is_not_taken_is_told(
    small: Collected, tmp_path: Path, fake_slurm: Path
) -> None:
    refusing = tmp_path / "bin" / "sbatch"
    refusing.write_text("#!/bin/sh\necho no such partition >&2\nexit 1\n")
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE.format(folder=tmp_path))
    with (
        pytest.raises(ExecutorError, match=r"did not take a job.*no such partition"),
        open_executor(small, cluster_file=profile, jobs=1, tls=None) as executor,
    ):
        drive(executor, small)


def test_without_the_extra_the_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['distributed'] = None; import tokitai_cli.batch.cluster"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert "UsageError" in done.stderr
    assert "pip install 'tokitai[cluster]'" in done.stderr


def test_the_time_that_a_close_may_take_is_bounded() -> None:
    stop, finished = threading.Event(), []

    def hang() -> None:
        finished.append(stop.wait(60))

    within(0.2, hang)
    assert finished == []
    stop.set()
