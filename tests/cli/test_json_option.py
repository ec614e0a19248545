"""Every verb prints JSON where `--json` asks for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import evidence_samples as samples
from tokitai_cli import evidence as stage
from tokitai_cli.cli import app, terminal
from tokitai_cli.cli.app import run
from tokitai_cli.cli.terminal.streams import plain
from tokitai_cli.cli.terminal.styled_blocks import Column, Table
from tokitai_cli.core.model.verdict import Verdict

KERNEL = """#include <hip/hip_runtime.h>
__global__ void scale(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
"""


@pytest.mark.parametrize("verb", app._VERBS)
def test_every_verb_has_it(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_what_they_print_is_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "k.hip"
    source.write_text(KERNEL)
    file = tmp_path / "e.json"
    stage.write(samples.sample(Verdict.VERIFIED), file)
    spec = Path("specs/softmax.yaml").resolve()
    told = {}
    for name, words in {
        "new": ["new", str(source), "--out", str(tmp_path / "draft")],
        "show": ["show", str(spec)],
        "report": ["report", str(file)],
        "compare": ["compare", str(file), str(file)],
        "schema": ["schema", "spec"],
        "completion": ["completion", "bash"],
        "claims": ["claims", str(file)],
    }.items():
        assert run([*words, "--json"]) == 0, name
        told[name] = json.loads(capsys.readouterr().out)
    assert told["new"]["files"][0].endswith("spec.yaml")
    assert told["new"]["next"].startswith("tokitai verify ")
    assert told["show"]["spec"]["op"] == "softmax"
    assert told["report"]["schema"] == "tokitai/evidence/v4"
    assert told["compare"]["fine"] is True
    assert told["completion"]["shell"] == "bash"
    written = json.loads((tmp_path / "draft" / "tokitai-spec-v1.schema.json").read_text())
    assert written == told["schema"]
    first = (tmp_path / "draft" / "spec.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=tokitai-spec-v1.schema.json"


def test_a_long_cell_of_plain_text_moves_its_own_row_alone() -> None:
    columns = [Column("a"), Column("value", wide=True), Column("from")]
    text = plain(Table(columns, [["x", "short", "here"], ["y", "long " * 40, "there"]]))
    first, second, third = text.splitlines()
    assert first.index("from") == second.index("here") == 10
    assert third.endswith("there")


def test_the_slowest_cases_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show_slowest([("a", 0.5), ("b", 2.0), ("c", 1.0)], 2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[2:]] == ["b", "c"]
    terminal.show_slowest([("a", 0.5)], None)
    assert capsys.readouterr().out == ""
