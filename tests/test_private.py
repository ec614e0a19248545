"""No folder of a person stands in evidence."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests import evidence_samples as samples
from tokitai_cli import evidence as stage
from tokitai_cli.cli.app import run
from tokitai_cli.evidence.private import without_folders
from tokitai_cli.report import EVIDENCE_FORMATS, render


def test_homes_and_known_folders_are_told_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/data/people/me")
    text = "-I/data/people/me/x /home/you/y:3 '/Users/They/z' /work/spec/k.hip /data/people/meant"
    build = samples.build(command=["g++", text], headers={"/home/you/h.h": "d" * 64})
    one = samples.case(rerun=f"tokitai {text}", reason=text)
    parts = samples.parts([one], builds={samples.BUILD: build}, folders={"/work/spec": "."})
    found = stage.assemble(parts)
    want = "-I~/x ~/y:3 '~/z' ./k.hip /data/people/meant"
    (made,) = found.builds.values()
    assert made.command == ["g++", want]
    assert list(made.headers) == ["~/h.h"]
    assert found.cases[0].reason == want
    assert found.cases[0].rerun == f"tokitai {want.replace('./k', '/work/spec/k')}"
    source = msgspec.structs.replace(next(iter(found.sources.values())), text="// /home/you/x\n")
    kept = without_folders(msgspec.structs.replace(found, sources={"a": source}), {})
    assert kept.sources["a"].text == "// /home/you/x\n"


def test_a_run_at_home_does_not_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "someone"
    folder = home / "work" / "kernels"
    folder.mkdir(parents=True)
    example = Path(__file__).parent.parent / "docs/examples/dropped_term"
    for name in ("spec.yaml", "product.hip"):
        (folder / name).write_bytes((example / name).read_bytes())
    monkeypatch.setenv("HOME", str(home))
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    words = ["--device", "cpu", "--save-arrays", "--out", "out", "-q"]
    assert run(["verify", str(folder / "spec.yaml"), *words]) == 1
    path = home / "elsewhere/out/dropped-term.json"
    assert "someone" not in path.read_text("utf-8")
    assert json.loads(path.read_text("utf-8"))["rerun"].startswith(
        "tokitai verify ../work/kernels/"
    )
    found = stage.read(path)
    assert not any(b"someone" in render(found, kind) for kind in EVIDENCE_FORMATS)
