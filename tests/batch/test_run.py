"""A batch under way: order, workers that are lost, failures that stop it, kills and resumption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
import yaml

from tests.runs import KERNELS, derived_spec, tokitai, tokitai_here
from tests.support import slow
from tokitai_cli import batch
from tokitai_cli.batch.store.database import Store
from tokitai_cli.batch.work.conduct import Conductor, expected_seconds
from tokitai_cli.batch.work.local import LocalExecutor
from tokitai_cli.batch.work.queue import TaskQueue, lot_of
from tokitai_cli.batch.work.serve import device_identity, lost
from tokitai_cli.core.errors import StorageError
from tokitai_cli.core.model.batch_record import BatchPlanned, BatchProgress, Reply, Task
from tokitai_cli.core.model.device import DeviceClass, Fact, Probe
from tokitai_cli.core.model.verdict import Verdict


def task(number: int, *, device: str = "cpu", variant: str = "v", spec: str = "s") -> Task:
    return Task(
        number=number,
        spec=spec,
        variant=variant,
        shape={},
        profile="normal",
        seed=0,
        empty=False,
        device=device,
    )


def drained(queue: TaskQueue, **options: bool) -> list[int]:
    numbers, lot = [], None
    while (taken := queue.take(lot, **options)) is not None:
        numbers.append(taken.number)
        lot = lot_of(taken)
    return numbers


def test_a_worker_stays_with_its_lot_and_takes_the_longest_of_it() -> None:
    weights = {0: ("a", 1.0), 1: ("b", 5.0), 2: ("a", 3.0), 3: ("b", 2.0), 4: ("a", 9.0)}
    queue = TaskQueue((task(n, variant=v), weight) for n, (v, weight) in weights.items())
    assert drained(queue) == [4, 2, 0, 1, 3]
    assert len(queue) == 0


def test_without_a_gpu_only_what_needs_none_is_taken() -> None:
    queue = TaskQueue(
        [(task(0, device="cuda"), 1.0), (task(1), 1.0), (task(2, device="rocm"), 1.0)]
    )
    assert drained(queue, gpu=False) == [1]
    assert sorted(drained(queue, gpu=True)) == [0, 2]


def test_what_was_put_back_is_taken_again_and_known_records_go_along() -> None:
    queue = TaskQueue([(task(0), 1.0), (task(1), 2.0)])
    first = queue.take()
    assert first is not None
    queue.learned(first, ["build-key"])
    queue.put(first)
    again = queue.take()
    assert again is not None
    assert (again.number, again.known) == (first.number, ("build-key",))


def small_spec(folder: Path, *, kernels: Sequence[str] = (), source: Path | None = None) -> Path:
    """gemm-bw with one small suite of exact cases, in a folder of its own."""
    folder.mkdir(exist_ok=True)
    suite = [{"shape": {"m": m, "n": 16, "k": 16}} for m in (16, 32)]
    return derived_spec(
        folder,
        "gemm-bw",
        "grad-a",
        kernels or ["gemm_bw_grad_a_fp16_f32_kernel"],
        source=source or Path(__file__).parents[2] / "kernels" / "gemm_bw.hip",
        suites={"quick": suite},
    )


def done_ids(folder: Path) -> dict[str, bool]:
    """Cases that are on disk, and whether they were kept; none where there is no batch yet."""
    try:
        with Store.read(folder) as store:
            return {done.id: done.kept for done in store.done()}
    except StorageError:
        return {}


class Scripted:
    """An executor whose replies are made by a function of task and attempt."""

    workers = 2

    def __init__(self, answer: object, most: int = 1) -> None:
        self._answer = answer
        self._most = most
        self.taken: list[Task] = []

    @property
    def running(self) -> int:
        return len(self.taken)

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def feed(self, queue: TaskQueue) -> None:
        while len(self.taken) < self._most and (found := queue.take()) is not None:
            self.taken.append(found)

    def collect(self, timeout: float) -> list[Reply]:
        replies, self.taken = [self._answer(one) for one in self.taken], []  # type: ignore[operator]
        return replies


@pytest.fixture
def collected(tmp_path: Path) -> batch.Collected:
    small_spec(tmp_path / "specs")
    return batch.collect(batch.batch_options([str(tmp_path / "specs")], device="cpu"))


def conducted(
    collected: batch.Collected, store: Store, executor: object, **options: object
) -> tuple[Conductor, str, list[BatchProgress]]:
    events: list[BatchProgress] = []

    def listen(event: object) -> None:
        if isinstance(event, BatchProgress):
            events.append(event)

    settings: dict[str, object] = {"resume": False, "max_failures": 0, **options}
    conductor = Conductor(collected, store, store.newest(), listen, **settings)  # type: ignore[arg-type]
    return conductor, conductor.run(executor).how, events  # type: ignore[arg-type]


def answered(collected: batch.Collected, verdict: Verdict) -> object:
    def answer(one: Task) -> Reply:
        return msgspec.structs.replace(
            lost(one, collected.setup, "said so"), verdict=verdict, build="", seconds=0.5
        )

    return answer


def test_a_case_that_found_no_room_beside_others_runs_again_by_itself(
    collected: batch.Collected, tmp_path: Path
) -> None:
    """Two large cases at once may each find the other's memory gone."""
    together: list[int] = []

    class Crowded(Scripted):
        def collect(self, timeout: float) -> list[Reply]:
            crowd = len(self.taken) > 1
            together.append(len(self.taken))
            self._answer = answered(collected, Verdict.NOT_RUN if crowd else Verdict.VERIFIED)
            return super().collect(timeout)

    with Store.open(tmp_path / "out") as store:
        _, how, events = conducted(collected, store, Crowded(None, most=2))
    assert how == "whole"
    assert len(events) == len(collected.cases)
    assert {event.verdict for event in events} == {Verdict.VERIFIED}
    assert together.count(1) == len(collected.cases)


def test_a_case_that_never_fits_is_not_run_once_it_was_alone(
    collected: batch.Collected, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "out") as store:
        _, how, events = conducted(
            collected, store, Scripted(answered(collected, Verdict.NOT_RUN), most=3)
        )
    assert how == "whole"
    assert [event.verdict for event in events] == [Verdict.NOT_RUN] * len(collected.cases)


@pytest.mark.parametrize("most", [1, 3])
def test_the_batch_stops_after_the_most_failures(
    collected: batch.Collected, tmp_path: Path, most: int
) -> None:
    with Store.open(tmp_path / "out") as store:
        _, how, events = conducted(
            collected, store, Scripted(answered(collected, Verdict.REFUTED)), max_failures=most
        )
    assert how == "stopped"
    assert len(events) == most
    assert events[-1].failures == most


def test_recorded_times_come_before_sizes(collected: batch.Collected) -> None:
    first, second, *_ = collected.cases

    seconds = expected_seconds(collected.cases, {first.number: 7.0})
    assert seconds[0] == 7.0
    assert seconds[1] == pytest.approx(7.0 * second.weight / first.weight)
    assert all(value > 0 for value in expected_seconds(collected.cases, {}))


def test_every_result_is_on_disk_before_it_is_counted(
    collected: batch.Collected, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    seen: list[tuple[int, int]] = []

    def listen(event: object) -> None:
        if isinstance(event, BatchProgress):
            seen.append((event.position, len(done_ids(out))))

    with Store.open(out) as store:
        conductor = Conductor(collected, store, [], listen, resume=False, max_failures=0)
        conductor.run(LocalExecutor(collected.setup, workers=2))
    assert len(seen) == len(collected.cases)
    assert all(position <= written for position, written in seen)


def test_a_worker_that_is_killed_costs_nothing(collected: batch.Collected, tmp_path: Path) -> None:
    executor = LocalExecutor(collected.setup, workers=2)
    killed: list[int] = []

    def listen(event: object) -> None:
        if isinstance(event, BatchProgress) and event.position in (3, 8):
            worker = executor._workers[0]
            killed.append(worker.child.pid)
            os.kill(worker.child.pid, signal.SIGKILL)

    with Store.open(tmp_path / "out") as store:
        ended = Conductor(collected, store, [], listen, resume=False, max_failures=0).run(executor)
        done = {one.id: one for one in store.newest()}
    assert len(killed) == 2
    assert ended.how == "whole"
    assert sorted(done) == sorted(case.id for case in collected.cases)
    assert {one.verdict for one in done.values()} == {Verdict.VERIFIED}


def test_a_case_that_takes_each_worker_down_is_a_fault_and_the_others_go_on(
    collected: batch.Collected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doomed = collected.cases[5]
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'tokitai_cli.batch.work.worker' in sys.orig_argv:\n"
        "    from tokitai_cli.batch.work import serve\n"
        "    whole = serve.CaseServer.serve\n"
        "    def serve_or_die(self, task):\n"
        f"        if task.number == {doomed.number}:\n"
        "            sys.stderr.write('no more memory\\n'); sys.stderr.flush()\n"
        "            os.kill(os.getpid(), 9)\n"
        "        return whole(self, task)\n"
        "    serve.CaseServer.serve = serve_or_die\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(hook))
    with Store.open(tmp_path / "out") as store:
        _, how, events = conducted(collected, store, LocalExecutor(collected.setup, workers=2))
    assert how == "whole"
    by_id = {event.id: event for event in events}
    assert len(by_id) == len(collected.cases)
    assert by_id[doomed.id].verdict is Verdict.INTERNAL_ERROR
    assert "SIGKILL" in by_id[doomed.id].reason
    assert "no more memory" in by_id[doomed.id].reason
    others = {event.verdict for name, event in by_id.items() if name != doomed.id}
    assert others == {Verdict.VERIFIED}


def test_gpu_workers_are_as_many_as_there_are_children_for_them(collected: batch.Collected) -> None:
    """Tasks of a device that is not here: no worker of more is started for them."""
    tasks = [msgspec.structs.replace(case.task(), device="rocm") for case in collected.cases]
    queue = TaskQueue((one, 1.0) for one in tasks)
    with LocalExecutor(collected.setup, workers=6, gpus=(0, 1), gpu_children=1) as executor:
        executor.feed(queue)
        assert sorted(worker.gpu or 0 for worker in executor._workers) == [0, 1]
        deadline = time.monotonic() + 60
        replies: list[Reply] = []
        while len(replies) < len(tasks) and time.monotonic() < deadline:
            executor.feed(queue)
            replies += executor.collect(1.0)
    assert {reply.verdict for reply in replies} == {Verdict.INADMISSIBLE}


PROGRAM = (sys.executable, "-m", "tokitai_cli", "batch")


def start(specs: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, str(specs), "--device", "cpu", "-j", "2", "--out", str(out), *more],
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_cases(out: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(done_ids(out)) >= count:
            return
        time.sleep(0.005)
    pytest.fail("the batch made no headway")


SEEDS = "0,1,2,3,4,5,6,7"


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGINT, slow(signal.SIGTERM), slow(signal.SIGHUP)]
)
def test_a_batch_that_was_stopped_goes_on_where_it_was(
    tmp_path: Path, number: signal.Signals
) -> None:
    specs, out = tmp_path / "specs", tmp_path / "out"
    small_spec(specs)
    with start(specs, out, "--seed", SEEDS) as process:
        wait_for_cases(out, 10)
        process.send_signal(number)
        code = process.wait(timeout=60)
        said = process.communicate()
    expected = {signal.SIGKILL: -9, signal.SIGINT: 130}
    assert code == expected.get(number, 143)
    before = set(done_ids(out))
    assert 10 <= len(before) < 160
    if number == signal.SIGKILL:
        shown = json.loads(batch.render_folder(out, "json"))
        assert (shown["verdict"], shown["not_started"]) == ("interrupted", 160 - len(before))
        assert "the batch has not ended" in shown["reason"]
    else:
        index = json.loads((out / "index.json").read_text(encoding="utf-8"))
        assert index["verdict"] == "interrupted"
        assert index["not_started"] == 160 - len(before)
        assert "--resume" in said[0]
    done = tokitai("batch", specs, "--device", "cpu", "-j", "2", "--seed", SEEDS, "--out", out,
                   "--resume")  # fmt: skip
    assert done.returncode == 0, done.stderr
    index = json.loads((out / "index.json").read_text(encoding="utf-8"))
    # Of some seeds the special values leave fewer than half of the elements to be judged.
    assert sum(index["counts"].values()) == 160
    assert set(index["counts"]) <= {"verified", "vacuous"}
    assert index["kept"] == len(before)
    after = done_ids(out)
    assert {name for name, kept in after.items() if kept} == before
    assert len(after) == 160


def test_what_a_result_depends_on_makes_it_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs, out = tmp_path / "specs", tmp_path / "out"
    source = tmp_path / "kernel.hip"
    shipped = Path(__file__).parents[2] / "kernels" / "gemm_bw.hip"
    source.write_bytes(shipped.read_bytes())
    (tmp_path / "storage.hpp").write_bytes(shipped.with_name("storage.hpp").read_bytes())
    path = small_spec(specs, source=source)
    words: list[str | Path] = [
        "batch",
        specs,
        "--device",
        "cpu",
        "-j",
        "1",
        "--out",
        out,
        "--resume",
        "-q",
        "--profile",
        "normal",
    ]

    def kept(*more: str) -> int:
        done = tokitai_here(*words, *more)
        assert done.returncode == 0, done.stderr + done.stdout
        return int(json.loads((out / "index.json").read_text(encoding="utf-8"))["kept"])

    assert kept() == 0
    assert kept() == 2
    source.write_bytes(shipped.read_bytes() + b"\n// changed\n")
    assert kept() == 0
    assert kept() == 2
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**spec, "summary": "Another one."}), encoding="utf-8")
    assert kept() == 0
    assert kept("--repeat", "3") == 0
    assert kept("--repeat", "3") == 2
    compiler = tmp_path / "g++"
    compiler.write_text('#!/bin/sh\n# another compiler\nexec g++ "$@"\n', encoding="utf-8")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    assert kept("--repeat", "3") == 0


def test_failures_stop_a_batch_with_fail_fast(tmp_path: Path) -> None:
    specs, out = tmp_path / "specs", tmp_path / "out"
    small_spec(specs, kernels=["last_term"], source=KERNELS / "gemm_faults.hip")
    done = tokitai("batch", specs, "--device", "cpu", "-j", "1", "--out", out, "--fail-fast")
    assert done.returncode == 1, done.stderr + done.stdout
    index = json.loads((out / "index.json").read_text(encoding="utf-8"))
    assert index["verdict"] == "refuted"
    assert index["not_started"] > 0
    assert "run again" in done.stdout or "run it again" in done.stdout


def test_planned_event_tells_of_results_on_disk(collected: batch.Collected, tmp_path: Path) -> None:
    options = batch.batch_options(
        [str(tmp_path / "specs")], device="cpu", out=str(tmp_path / "out"), jobs=1
    )
    events: list[object] = []
    batch.run(options, collected, events.append)
    resumed = msgspec.structs.replace(options, resume=True)
    outcome = batch.run(resumed, collected, events.append)
    planned = [event for event in events if isinstance(event, BatchPlanned)]
    assert [event.candidates for event in planned] == [0, len(collected.cases)]
    assert outcome.index.kept == len(collected.cases)
    assert outcome.index.verdict is Verdict.VERIFIED


def test_a_spec_with_a_byte_order_mark_is_one_like_others(tmp_path: Path) -> None:
    path = small_spec(tmp_path / "specs")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    options = batch.batch_options(
        [str(path)], device="cpu", out=str(tmp_path / "out"), jobs=1, profile=["normal"]
    )
    outcome = batch.run(options, batch.collect(options), lambda event: None)
    assert outcome.index.verdict is Verdict.VERIFIED


def test_workers_run_this_tool_wherever_the_batch_is_started(tmp_path: Path) -> None:
    """A folder of the tool's name in the working folder, such as another checkout's, is not taken."""
    small_spec(tmp_path / "specs")
    (tmp_path / "tokitai_cli" / "batch").mkdir(parents=True)
    for package in (tmp_path / "tokitai_cli", tmp_path / "tokitai_cli" / "batch"):
        (package / "__init__.py").write_text("raise SystemExit('another tool')\n", "utf-8")
    program = [sys.executable, "-P", "-c", "from tokitai_cli.cli.main import main; main()"]
    words = ["batch", "specs", "--device", "cpu", "-j", "1", "--profile", "normal"]
    done = subprocess.run(
        [*program, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("what", ["oracle", "source"])
def test_what_is_changed_under_a_batch_gives_no_result(tmp_path: Path, what: str) -> None:
    """A result of another text would be kept under the digest of the one that was collected."""
    specs = tmp_path / "specs"
    source = tmp_path / "kernel.hip"
    shipped = Path(__file__).parents[2] / "kernels" / "gemm_bw.hip"
    source.write_bytes(shipped.read_bytes())
    (tmp_path / "storage.hpp").write_bytes(shipped.with_name("storage.hpp").read_bytes())
    path = small_spec(specs, source=source)
    oracle = specs / "oracle.py"
    if what == "oracle":
        oracle.write_text(
            "import numpy as np\n"
            "def product(params, inputs, scalars):\n"
            "    a, b = (inputs[n].astype(np.float64) for n in ('grad_c', 'b'))\n"
            "    return {'grad_a': {'reference': a @ b.T, 'error': np.abs(a) @ np.abs(b.T) * 1e-5}}\n",
            encoding="utf-8",
        )
        spec = yaml.safe_load(path.read_text(encoding="utf-8"))
        for variant in spec["variants"].values():
            variant["oracle"] = "oracle.py:product"
            variant.pop("replay", None)
            variant["checks"] = [one for one in variant["checks"] if one["metric"] == "bound"]
        path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    options = batch.batch_options(
        [str(specs)], device="cpu", out=str(tmp_path / "o"), jobs=1, profile=["normal"]
    )
    collected = batch.collect(options)
    changed = oracle if what == "oracle" else source
    before = changed.read_bytes()
    comment = b"\n# changed\n" if what == "oracle" else b"\n// changed\n"

    def change(event: object) -> None:
        if isinstance(event, BatchPlanned):
            changed.write_bytes(before + comment)

    outcome = batch.run(options, collected, change)
    assert outcome.index.verdict is Verdict.NOT_RUN
    assert "was changed while it was verified" in outcome.index.reason
    changed.write_bytes(before)
    resumed = msgspec.structs.replace(options, resume=True)
    again = batch.run(resumed, collected, lambda event: None)
    assert (again.index.verdict, again.index.kept) == (Verdict.VERIFIED, 0)


def test_a_batch_that_is_killed_leaves_no_index_of_an_earlier_one(
    collected: batch.Collected, tmp_path: Path
) -> None:
    options = batch.batch_options(
        [str(tmp_path / "specs")], device="cpu", out=str(tmp_path / "out"), jobs=1
    )
    outcome = batch.run(options, collected, lambda event: None)
    evidence = [options.out / name for one in outcome.index.specs for name in one.evidence]
    left: list[bool] = []

    def look(event: object) -> None:
        if isinstance(event, BatchPlanned):
            left.extend(path.exists() for path in (*outcome.files, *evidence))

    batch.run(options, collected, look)
    assert len(left) == len(outcome.files) + len(evidence) == 8
    assert not any(left)
    assert all(path.is_file() for path in (*outcome.files, *evidence))


def test_what_was_passed_over_stands_in_the_index(tmp_path: Path) -> None:
    small_spec(tmp_path / "specs")
    (tmp_path / "specs" / "other.yaml").write_text("services: {}\n", encoding="utf-8")
    out = tmp_path / "out"
    done = tokitai("batch", tmp_path / "specs", "--device", "cpu", "--profile", "normal", "-q",
                   "--out", out)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "other.yaml: no spec" in done.stdout
    assert "other.yaml" in (out / "index.md").read_text(encoding="utf-8")


def probe_of(*gpus: str, driver: str = "580.1") -> Probe:
    facts = [Fact("gpu", text, "nvidia-smi") for text in gpus]
    facts += [Fact("driver", driver, "nvidia-smi"), Fact("cores", str(len(gpus)), "uname")]
    return Probe("cuda", DeviceClass.NVIDIA_GPU, True, True, "sm_90", tuple(facts))


def test_a_result_is_fresh_for_gpus_of_its_model_wherever_they_sit() -> None:
    one = device_identity(probe_of("0: H100, sm_90"))
    assert device_identity(probe_of("0: H100, sm_90", "1: H100, sm_90")) == one
    assert device_identity(probe_of("0: H200, sm_90")) != one
    assert device_identity(probe_of("0: H100, sm_90", driver="581.0")) != one
