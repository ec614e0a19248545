"""Shell completion, and how the tool is cited."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tokitai_cli import __version__

ROOT = Path(__file__).parents[2]
MAIN = [sys.executable, "-m", "tokitai_cli"]


def completed(typed: str) -> list[str]:
    environment = {
        **os.environ,
        "_TOKITAI_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    done = subprocess.run(MAIN, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_verbs_options_and_parameters_are_completed() -> None:
    assert completed("tokitai ver") == ["verify"]
    assert {"--m", "--device"} <= set(completed("tokitai verify gemm-bw --"))


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("tokitai verify soft", ["softmax"]),
        ("tokitai verify nothing-of-the-kind", []),
        ("tokitai verify softmax --suite f", ["full"]),
        ("tokitai compare softmax --variant grad-", ["grad-bf16"]),
        ("tokitai sanitize softmax --device c", ["cuda", "cpu"]),
        ("tokitai report --format j", ["junit", "json"]),
    ],
)
def test_ops_and_what_options_take_are_completed(typed: str, words: list[str]) -> None:
    assert completed(typed) == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_one_that_the_shell_reads(shell: str, tmp_path: Path) -> None:
    done = subprocess.run([*MAIN, "completion", shell], capture_output=True, text=True, check=True)
    assert "_TOKITAI_COMPLETE" in done.stdout
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(done.stdout, "utf-8")
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True)


def test_the_citation_is_that_of_this_version() -> None:
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert told["version"] == __version__
    assert told["cff-version"] == "1.2.0"
    assert {"title", "authors", "message", "license"} <= set(told)
