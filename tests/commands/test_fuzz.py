"""The tool before what it is not made for: an exit code that means something, no traceback, no hang.

Specs and evidence are real ones with words and bytes changed; command lines are of the tool's own words
and of others; replies of a child are bytes.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import random
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.evidence_samples import sample
from tokitai_cli import batch, evidence
from tokitai_cli.cli import app
from tokitai_cli.core import resources
from tokitai_cli.core.errors import TokitaiError, UsageError
from tokitai_cli.core.model.options import TABLE, flag
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run.child import frames
from tokitai_cli.run.device_session import DeviceSession
from tokitai_cli.run.specs import load

pytestmark = pytest.mark.slow
EXAMPLES, PROCESSES = 2500, 200
CODES = {0, 2, *(one.exit_code for one in Verdict if one is not Verdict.INTERNAL_ERROR)}
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=20_000,
    suppress_health_check=list(HealthCheck),
    database=None,
)
JUNK = (
    *(
        "",
        "0",
        "-1",
        "1e999",
        "nan",
        ".inf",
        "null",
        "[]",
        "{}",
        "~",
        "true",
        "'",
        '"',
        "%",
        "\t",
        "\0",
    ),
    *(
        "9" * 40,
        "a" * 300,
        "é",
        "\u202e",
        "&a *a",
        "!!python/object:os.system",
        "2026-01-01",
        "0x10",
    ),
    *(
        "../../etc/passwd",
        "/dev/zero",
        "{m}",
        "m / 0",
        "ceil_div(m, 0)",
        "m ** 99999",
        "__import__",
    ),
    *("-", "--", "<<: *x", "|", ">-", "1_000", "0o7", "=", ",", "1:2:0", "1:99999999999"),
)
VERBS = (*app._VERBS, "nothing", "")
WORDS = (
    *(option.flag for option in TABLE),
    *("softmax", "gemm-bw", "layernorm", "--rows", "--m", "--help", "-h", "--version", "-k", "-j"),
    *(
        "cpu",
        "auto",
        "all",
        "normal",
        "quick",
        "fwd",
        "1",
        "16,64",
        "64:256:64",
        "md",
        "json",
        *JUNK,
    ),
)
PASSED = [word for word in WORDS if "\0" not in word]  # no process can be given the others


def changed(data: bytes, seed: int) -> bytes:
    """`data` with a few words replaced, lines dropped, doubled or moved, or bytes changed."""
    rng = random.Random(seed)
    text = data.decode("utf-8", "surrogateescape")
    for _ in range(rng.choice((1, 1, 2, 5))):
        lines = text.splitlines(keepends=True) or [""]
        at, kind = rng.randrange(len(lines)), rng.randrange(7)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 2:
            lines[at] = rng.choice(("  ", "\t", "- ")) + lines[at]
        elif kind == 3:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        elif kind == 4 and (words := list(re.finditer(r"[\w.+-]+", lines[at]))):
            word = rng.choice(words)
            lines[at] = lines[at][: word.start()] + rng.choice(JUNK) + lines[at][word.end() :]
        else:
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + chr(rng.randrange(256)) + lines[at][place:]
        text = "".join(lines)
    return text.encode("utf-8", "surrogateescape")


@functools.cache
def spec_texts() -> list[tuple[Path, bytes]]:
    return [(path, path.read_bytes()) for path in sorted(resources.specs_dir().glob("*.yaml"))]


@functools.cache
def evidence_texts() -> list[bytes]:
    return [evidence.to_json(sample(one)).encode() for one in (Verdict.VERIFIED, Verdict.REFUTED)]


@fuzz
@given(which=st.integers(0, 1000), seed=st.integers(0, 2**32))
def test_changed_specs_are_read_or_refused(which: int, seed: int) -> None:
    texts = spec_texts()
    path, data = texts[which % len(texts)]
    with contextlib.suppress(TokitaiError):
        load(path, changed(data, seed))


@fuzz
@given(which=st.integers(0, 1), seed=st.integers(0, 2**32))
def test_changed_evidence_is_read_or_refused(which: int, seed: int) -> None:
    path = Path(os.environ["TOKITAI_FUZZ_FOLDER"]) / "evidence.json"
    path.write_bytes(changed(evidence_texts()[which], seed))
    with contextlib.suppress(TokitaiError):
        evidence.read(path)


@settings(fuzz, deadline=None)  # one of them verifies all ops
@given(verb=st.sampled_from(VERBS), words=st.lists(st.sampled_from(PASSED), max_size=6))
def test_command_lines_end_with_a_code_of_theirs(verb: str, words: list[str]) -> None:
    try:
        assert app.run([verb, *words]) in CODES
    except OSError as error:  # a path of 300 letters: the process ends with 2 and says so
        if error.errno != errno.ENAMETOOLONG:
            raise


@fuzz
@given(payload=st.binary(max_size=400), head=st.booleans(), status=st.integers(0, 9))
def test_replies_of_a_child_are_read_or_garbage(payload: bytes, head: bool, status: int) -> None:
    if head:
        payload = struct.pack("<4Q", 1, 7, status, 2) + payload
    with contextlib.suppress(frames.GarbageError):
        frames.read_answer(payload, number=7, repetitions=2, buffers=3)
    with contextlib.suppress(frames.GarbageError):
        frames.read_hello((b"tokitai-child 1 u64le\n" if head else b"") + payload)


def nothing_runs(*_: object, **__: object) -> None:
    raise UsageError("nothing runs here")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of every command; no kernel is built or run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKITAI_FUZZ_FOLDER", str(tmp_path))
    monkeypatch.setenv("TOKITAI_CACHE", str(tmp_path / "cache"))
    # Not the verbs' own functions: a module first loaded by such a command would keep what stands here.
    monkeypatch.setattr(DeviceSession, "__init__", nothing_runs)
    monkeypatch.setattr(batch, "run", nothing_runs)
    return tmp_path


def as_processes() -> list[Callable[[random.Random, Path], list[str]]]:
    """Command lines of real processes: changed specs and evidence, and words."""

    def spec(rng: random.Random, folder: Path) -> list[str]:
        path, data = rng.choice(spec_texts())
        (folder / path.name).write_bytes(changed(data, rng.randrange(2**32)))
        return ["show", str(folder / path.name)]

    def report(rng: random.Random, folder: Path) -> list[str]:
        (folder / "e.json").write_bytes(changed(rng.choice(evidence_texts()), rng.randrange(2**32)))
        return [rng.choice(("report", "check", "claims")), str(folder / "e.json")]

    def words(rng: random.Random, folder: Path) -> list[str]:
        chosen = [rng.choice(PASSED) for _ in range(3)]
        return [rng.choice(("show", "list", "report", "merge", "schema", "nothing")), *chosen]

    return [spec, report, words]


def test_real_processes_end_with_a_code_of_theirs(folder: Path) -> None:
    rng, makers = random.Random(1), as_processes()
    for number in range(PROCESSES):
        argv = makers[number % len(makers)](rng, folder)
        done = subprocess.run(
            [sys.executable, "-m", "tokitai_cli", *argv],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            errors="replace",
            env={**os.environ, "PYTHONPATH": str(Path(resources.__file__).parents[1])},
        )
        assert done.returncode in CODES, (argv, done.stderr)
        assert "Traceback" not in done.stdout + done.stderr, argv


def test_flags_of_the_table_are_among_the_words() -> None:
    assert {flag(option.name) for option in TABLE} <= {*WORDS}
