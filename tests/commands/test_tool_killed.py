"""The tool ended from outside, at each stage: what it leaves is whole, and nothing goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.leftovers import Place, eventually
from tests.run.test_child_faults import evidence_of, spec_in, strict, verify
from tests.runs import tokitai
from tests.support import slow

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}


def start(place: Place, spec: Path, *words: str) -> subprocess.Popen[str]:
    """The tool at work."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(
        [sys.executable, "-m", "tokitai_cli", "verify", spec, "--device", "cpu", *words,
         "--out", place.out],
        cwd=place.work,
        env={**os.environ, **place.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def ended(tool: subprocess.Popen[str], how: signal.Signals) -> tuple[int, str]:
    """Exit code and output of the tool after the signal."""
    tool.send_signal(how)
    output, _ = tool.communicate(timeout=30)
    return tool.returncode, output


def test_killed_while_it_compiles(tmp_path: Path) -> None:
    """Each signal in its turn on one cache, which then serves the run that is left alone."""
    place = Place.under(tmp_path / "place", own_cache=True)
    spec = spec_in(tmp_path, ["right", "right_again"])
    for how, code in SIGNALS.items():
        with start(place, spec) as tool:
            assert eventually(lambda: place.processes("cc1plus", "clang", "zig")), how
            assert ended(tool, how)[0] == code
        assert place.is_clean(), (how, place.processes(), place.temporary())
        if how is not signal.SIGKILL:
            found = {name: case["verdict"] for name, case in evidence_of(place).items()}
            assert found == {"right": "interrupted"}
            (place.out / "children.json").unlink()
    assert not (place.out / "children.json").exists()
    done = verify(place, spec)
    assert done.returncode == 0, done.stdout
    assert "built in" in done.stderr
    assert "rebuilt" not in done.stderr


@pytest.mark.parametrize(
    "how",
    [signal.SIGKILL, slow(signal.SIGINT), slow(signal.SIGTERM)],
    ids=lambda how: how.name,
)
def test_killed_while_a_kernel_runs(how: signal.Signals, tmp_path: Path) -> None:
    place = Place.under(tmp_path / "place")
    spec = spec_in(tmp_path, ["right", "waits", "right_again"])
    assert verify(place, spec, "--variant", "right").returncode == 0
    before = (place.out / "children.json").read_bytes()
    with start(place, spec, "--json") as tool:
        assert eventually((place.work / "running").exists, 60)
        code, output = ended(tool, how)
    assert code == SIGNALS[how]
    assert "Traceback" not in output
    assert place.is_clean(), (place.processes(), place.temporary())
    if how is signal.SIGKILL:
        assert (place.out / "children.json").read_bytes() == before
    else:
        evidence = strict((place.out / "children.json").read_text(encoding="utf-8"))
        assert evidence["verdict"] == "interrupted"
        assert "after 1 of 3 cases" in evidence["reason"]
        found = {name: case["verdict"] for name, case in evidence_of(place).items()}
        assert found == {"right": "verified", "waits": "interrupted"}
    done = verify(place, spec, "--variant", "right")
    assert done.returncode == 0
    assert "from the cache" in done.stderr


def test_a_child_that_is_killed_from_outside(tmp_path: Path) -> None:
    place = Place.under(tmp_path / "place")
    spec = spec_in(tmp_path, ["right", "waits", "right_again"])
    with start(place, spec) as tool:
        assert eventually((place.work / "running").exists, 60)
        (child,) = place.processes("--response-fd=")
        os.kill(child, signal.SIGKILL)
        output, _ = tool.communicate(timeout=30)
    assert tool.returncode == 5, output
    cases = evidence_of(place)
    assert [case["verdict"] for case in cases.values()] == ["verified", "crashed", "verified"]
    assert "was ended by SIGKILL (killed)" in cases["waits"]["reason"]
    assert place.is_clean()


def test_an_oracle_is_ended_with_the_tool(tmp_path: Path) -> None:
    place = Place.under(tmp_path / "place")
    spec = spec_in(tmp_path, ["right"])
    (tmp_path / "wrongs.py").write_text(
        "import time\nfrom pathlib import Path\n"
        f"def copy(params, inputs, scalars):\n    Path({str(place.work / 'asked')!r}).touch()\n"
        "    time.sleep(600)\n"
    )
    for how, code in SIGNALS.items():
        with start(place, spec) as tool:
            assert eventually((place.work / "asked").exists, 60)
            assert ended(tool, how)[0] == code
        (place.work / "asked").unlink()
        assert place.is_clean(), (how, place.processes(), place.temporary())


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_killed_at_any_time(how: signal.Signals, tmp_path: Path) -> None:
    """From its first import to its last line: the JSON is whole or not there."""
    place = Place.under(tmp_path / "place")
    spec = spec_in(tmp_path, ["right"])
    assert tokitai("verify", spec, "--device", "cpu", "--out", tmp_path / "warm").returncode == 0
    codes = set()
    for tenths in range(3, 15):
        with start(place, spec) as tool:
            with contextlib.suppress(subprocess.TimeoutExpired):
                tool.wait(tenths / 10)
            code, output = ended(tool, how)
        codes.add(code)
        # In front of its own handler, and behind it, the signal itself ends Python: the same to a shell.
        assert code in (0, SIGNALS[how], -how), output
        assert "Traceback" not in output
        for path in place.out.glob("*.json"):
            strict(path.read_text(encoding="utf-8"))
            path.unlink()
        assert place.is_clean(), (place.processes(), place.temporary())
    assert SIGNALS[how] in codes
