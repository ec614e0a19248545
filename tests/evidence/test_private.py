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
    assert found.cases[0].rerun == "tokitai -I~/x y:3 z k.hip meant"
    source = msgspec.structs.replace(next(iter(found.sources.values())), text="// /home/you/x\n")
    kept = without_folders(msgspec.structs.replace(found, sources={"a": source}), {})
    assert kept.sources["a"].text == "// /home/you/x\n"


def test_a_run_at_home_does_not_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "someone"
    folder = home / "work" / "kernels"
    folder.mkdir(parents=True)
    example = Path(__file__).parents[2] / "docs/examples/dropped_term"
    for name in ("spec.yaml", "product.hip"):
        (folder / name).write_bytes((example / name).read_bytes())
    monkeypatch.setenv("HOME", str(home))
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    assert run(["batch", "../work", "--device", "cpu", "--out", "many", "-q"]) == 1
    assert not any("someone" in one.read_text("utf-8") for one in written(Path("many")))
    words = ["--device", "cpu", "--save-arrays", "--out", "out", "-q"]
    assert run(["verify", str(folder / "spec.yaml"), *words]) == 1
    path = home / "elsewhere/out/dropped-term.json"
    assert "someone" not in path.read_text("utf-8")
    assert json.loads(path.read_text("utf-8"))["rerun"].startswith(
        "tokitai verify ../work/kernels/"
    )
    found = stage.read(path)
    assert not any(b"someone" in render(found, kind) for kind in EVIDENCE_FORMATS)


def written(folder: Path) -> list[Path]:
    """Files of a batch that are read by others than the tool."""
    return [
        one
        for one in folder.rglob("*")
        if one.suffix in (".json", ".jsonl", ".md", ".html", ".xml")
    ]


@pytest.mark.parametrize("home", [True, False])
def test_a_spec_of_another_folder_is_named_by_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: bool
) -> None:
    folder = tmp_path / "someone" / "kernels"
    folder.mkdir(parents=True)
    example = Path(__file__).parents[2] / "docs/examples/dropped_term"
    for name in ("spec.yaml", "product.hip"):
        (folder / name).write_bytes((example / name).read_bytes())
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    if home:
        monkeypatch.setenv("HOME", str(folder.parent))
    plain = ["--device", "cpu", "-q", "--out"]
    again = f"run it again: tokitai verify {folder}/spec.yaml "
    for words in (["verify", str(folder / "spec.yaml")], ["batch", str(folder)]):
        assert run([*words, *plain, words[0]]) == 1
        assert again in capsys.readouterr().out
        files = written(Path(words[0]))
        assert files
        assert not any("someone" in one.read_text("utf-8") for one in files)
    assert stage.read(Path("verify/dropped-term.json")).rerun.startswith(
        "tokitai verify spec.yaml "
    )
    assert json.loads(Path("batch/index.json").read_text("utf-8"))["rerun"].startswith(
        "tokitai batch kernels "
    )
