"""Calls of users' Python: each in a process of its own, forked from one that has numpy loaded."""

from __future__ import annotations

import os
import signal
import threading
import time
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest

from tests.cluster_processes import waited
from tests.spec_example import write_example
from tokitai_cli import spec as spec_stage
from tokitai_cli.core import process
from tokitai_cli.core.errors import OracleError
from tokitai_cli.oracles import references
from tokitai_cli.oracles.user import calls, imported, packages
from tokitai_cli.spec import plan

RIGHT = "return {'c': inputs['a'].astype('f8') + inputs['b']}"


def ask(folder: Path, body: str, *, head: str = "", timeout: float = 60.0) -> str:
    """What an oracle with this body prints."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = (
        f"import os, sys\nimport numpy as np\n{head}\n\ndef vector_add(params, inputs, scalars):\n"
    )
    loaded = spec_stage.load(write_example(folder, oracle=text + lines))
    case = plan.case_of(loaded, "main", {"n": 4}, "normal", 0)
    arrays = {name: np.ones(4, np.float32) for name in ("a", "b")}
    said: list[str] = []
    found = references.expect(case, arrays, timeout=timeout, log=said.append)
    assert np.all(found["c"].reference == 2)
    return "\n".join(said)


def forker() -> int:
    """Process number of the one that forks; the last call has given it back."""
    return calls._IDLE[-1]._child.pid


def test_nothing_of_a_call_is_left_for_the_next(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("seen = []\n")
    body = (
        "beside.seen.append(1)\n"
        "print(len(beside.seen), getattr(np, 'left', 'none'), os.environ.get('LEFT'), sys.argv[1:0])\n"
        "np.left = os.environ['LEFT'] = 'behind'\n"
        "np.add = None; sys.path.clear(); sys.modules['json'] = None\n"
        "os.close(0)\n" + RIGHT
    )
    told = [ask(tmp_path, body, head="import beside") for _ in range(3)]
    assert told == ["1 none None []"] * 3
    first = forker()
    ask(tmp_path, RIGHT)
    assert forker() == first
    (tmp_path / "beside.py").write_text("seen = [0]\n")
    assert ask(tmp_path, body, head="import beside") == "2 none None []"
    assert not list(tmp_path.rglob("*.pyc"))


def test_no_dead_process_is_left_by_a_call(tmp_path: Path) -> None:
    ask(tmp_path, RIGHT)
    children = psutil.Process(forker()).children
    waited(lambda: not children())
    with pytest.raises(OracleError, match="exit 3"):
        ask(tmp_path, "os._exit(3)")
    waited(lambda: not children())


def test_calls_draw_numbers_of_their_own(tmp_path: Path) -> None:
    body = "import random\nprint(np.random.rand(), random.random())\n" + RIGHT
    one, two = (ask(tmp_path, body).split() for _ in range(2))
    assert not set(one) & set(two)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os.kill(os.getppid(), 9)\nimport time\ntime.sleep(60)", r"without an answer \(SIGKILL"),
        ("os.kill(os.getpid(), 11)", r"without an answer \(signal 11\)"),
        ("os._exit(3)", r"without an answer \(exit 3\)"),
        ("import time\ntime.sleep(60)", r"gave no answer in 2 s and was stopped"),
    ],
    ids=["forker-killed", "crashed", "left", "hung"],
)
def test_the_next_call_goes_on_after_one_that_died(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(OracleError, match=words):
        ask(tmp_path, body, timeout=2)
    ask(tmp_path, RIGHT)


def test_the_forking_process_is_started_anew_when_it_died_between_calls(tmp_path: Path) -> None:
    ask(tmp_path, RIGHT)
    first = forker()
    os.kill(first, signal.SIGKILL)
    ask(tmp_path, RIGHT)
    assert forker() != first


def test_what_a_call_started_ends_with_it(tmp_path: Path) -> None:
    body = (
        "import subprocess\n"
        "print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL).pid, flush=True)\n"
        + RIGHT
    )
    pid = int(ask(tmp_path, body))
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state in "ZX":
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} still runs")


def test_the_environment_is_that_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "print(os.environ.get('TMPDIR'), os.environ.get('SECRET'))\n" + RIGHT
    monkeypatch.setenv("SECRET", "kept")
    ask(tmp_path, body)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert ask(tmp_path, body) == f"{tmp_path} None"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os.fork()\n" + RIGHT, "forks: it must run in one process"),
        ("open('answer.json', 'w').write('{}')\nos._exit(0)", "left an answer.json of its own"),
        (
            'open("answer.json", "w").write(\'{"outputs": {"c": {"reference": "../x.npy"}}}\')\n'
            "os._exit(0)",
            "left an answer.json of its own",
        ),
        (
            'open(\'answer.json\', \'w\').write(\'{"outputs": {"c": {"reference": "c.npy"}}}\')\n'
            "open('c.npy', 'w').close()\nos._exit(0)",
            "reference of c cannot be read",
        ),
    ],
    ids=["forks", "empty", "elsewhere", "no-array"],
)
def test_an_answer_that_is_not_the_calls_own_is_refused(
    tmp_path: Path, body: str, words: str
) -> None:
    with pytest.raises(OracleError, match=words):
        ask(tmp_path, body)


HIDDEN = {
    "sys.path": "sys.path.insert(0, '{}')\nimport refs\n",
    "importlib": (
        "import importlib.util\nspec = importlib.util.spec_from_file_location('r', '{}/refs.py')\n"
        "spec.loader.exec_module(importlib.util.module_from_spec(spec))\n"
    ),
    "runpy": "import runpy\nrunpy.run_path('{}/refs.py')\n",
    "exec": "exec(compile(open('{}/refs.py').read(), '{}/refs.py', 'exec'))\n",
}


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("way", HIDDEN)
def test_code_that_the_digest_does_not_follow_is_refused(
    tmp_path: Path, way: str, below: bool
) -> None:
    common = tmp_path / ("mine/lib" if below else "common")
    common.mkdir(parents=True)
    (common / "refs.py").write_text("one = 1\n")
    head = HIDDEN[way].replace("{}", str(common))
    with pytest.raises(
        OracleError,
        match=r"loaded (\.\./common|lib)/refs\.py in a way that the tool cannot follow"
        r"|find '__main__' module",
    ):
        ask(tmp_path / "mine", RIGHT, head=head)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("np.random.rand()", "uses random numbers of numpy.random without a seed"),
        ("np.random.default_rng().random()", r"f\.py:3: uses random numbers of default_rng\(\)"),
        ("np.random.default_rng(3).random()", ""),
        ("np.random.RandomState(3).rand()", ""),
    ],
)
def test_random_numbers_of_a_formula_are_named(tmp_path: Path, value: str, words: str) -> None:
    path = write_example(tmp_path)
    (tmp_path / "f.py").write_text(
        f"import numpy as np\ndef f(params, inputs, scalars):\n    x = {value}\n"
        "    return {'c': inputs['a'] + inputs['b'] + 0 * x}\n"
    )
    path.write_text(
        path.read_text().replace("oracle: oracle.py:vector_add", "oracle: {formula: f.py:f}")
    )
    loaded = spec_stage.load(path)
    assert loaded.spec.variants["main"].by_formula
    case = plan.case_of(loaded, "main", {"n": 4}, "normal", 0)
    arrays = {name: np.ones(4, np.float32) for name in ("a", "b")}
    if words:
        with pytest.raises(OracleError, match=words):
            references.expect(case, arrays)
    else:
        references.expect(case, arrays)


READS = {
    "open": "open('{}').read()",
    "numpy": "np.loadtxt('{}')",
    "pathlib": "pathlib.Path('{}').read_bytes()",
}


@pytest.mark.parametrize("way", READS)
def test_data_is_followed_where_it_is_named_and_refused_elsewhere(tmp_path: Path, way: str) -> None:
    """A file that its digest follows lies beside it, and stands there in quotes."""
    mine = tmp_path / "mine"
    (mine / "tables").mkdir(parents=True)
    (mine / "tables/scale.txt").write_text("2.0\n")
    (tmp_path / "other.txt").write_text("3.0\n")
    head = "import pathlib\nHERE = pathlib.Path(__file__).parent\n"
    beside = "str(HERE / 'tables/scale.txt')"
    ask(mine, READS[way].replace("'{}'", beside) + "\n" + RIGHT, head=head)
    outside = f"'{tmp_path}/other.txt'"
    with pytest.raises(
        OracleError, match=r"reads \.\./other\.txt, which its digest does not include"
    ):
        ask(mine, READS[way].replace("'{}'", outside) + "\n" + RIGHT, head=head)
    hidden = "str(HERE / 'tables' / ('scale' + '.txt'))"
    with pytest.raises(OracleError, match=r"reads tables/scale\.txt, which its digest does not"):
        ask(mine, READS[way].replace("'{}'", hidden) + "\n" + RIGHT, head=head)


def test_a_file_that_the_function_wrote_itself_may_be_read(tmp_path: Path) -> None:
    body = "open('kept.txt', 'w').write('1')\nassert open('kept.txt').read() == '1'\n"
    ask(tmp_path, body + RIGHT)


@pytest.mark.parametrize(
    "way", ["__import__('yaml')", "importlib.import_module('yaml')", "exec('import yaml')"]
)
def test_packages_are_imported_by_statements(tmp_path: Path, way: str) -> None:
    with pytest.raises(
        OracleError, match="imports yaml in a way that the tool cannot follow; write `import yaml`"
    ):
        ask(tmp_path, f"{way}\n{RIGHT}", head="import importlib\n")
    ask(tmp_path, RIGHT, head="import yaml\n")


def test_packages_and_data_are_part_of_the_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f.py").write_text("import yaml\nTABLE = 'table.txt'\n")
    (tmp_path / "table.txt").write_text("1")
    assert [path.name for path in imported.files_of("f.py:f", tmp_path)] == ["f.py", "table.txt"]
    first = imported.digest_of(imported.files_of("f.py:f", tmp_path))
    (tmp_path / "table.txt").write_text("2")
    assert imported.digest_of(imported.files_of("f.py:f", tmp_path)) != first
    found = packages.packages_of("f.py:f", tmp_path)
    assert [name.rpartition(" ")[0] for name in found] == ["package pyyaml"]
    assert all(len(digest) == 64 for digest in found.values())
    packages._known.cache_clear()
    other = SimpleNamespace(name="PyYAML", version="0.1", requires=[], read_text=lambda name: name)
    monkeypatch.setattr(metadata, "distribution", lambda name: other)
    assert list(packages.packages_of("f.py:f", tmp_path)) == ["package pyyaml 0.1"]
    packages._known.cache_clear()


def test_processes_of_many_threads_that_a_cut_run_ended_are_started_anew(tmp_path: Path) -> None:
    meet = threading.Barrier(4)  # so that each thread has a process of its own

    def call(number: int) -> None:
        meet.wait()
        ask(tmp_path / str(number), "import time; time.sleep(0.5)\n" + RIGHT)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(calls._IDLE) >= 2
    process.terminate_all()
    ask(tmp_path, RIGHT)
