"""No folder of a person stands in evidence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from tests import evidence_samples as samples
from tests.spec_example import example, write_example
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


def test_headers_are_named_as_the_spec_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that what `unpack` writes can be built, with no folder of the author in it."""
    spec = example("spec.yaml").replace(
        "source: ", "include: [../inc]\n    flags: [-isystem../../more/sys]\n    source: ", 1
    )
    kernel = f'#include "plus.h"\n{example("vector_add.hip")}'.replace("a[i] + b", "a[i] PLUS b")
    path = write_example(tmp_path / "secret" / "k" / "op", spec=spec, kernel=kernel)
    for place, text in (
        ("k/inc/plus.h", "#include <add.h>\n"),
        ("more/sys/add.h", "#define PLUS +\n"),
    ):
        (tmp_path / "secret" / place).parent.mkdir(parents=True)
        (tmp_path / "secret" / place).write_text(text, encoding="utf-8")
    monkeypatch.setenv("TOKITAI_CACHE", str(tmp_path / "secret-cache"))
    monkeypatch.chdir(path.parent)
    out = str(tmp_path / "out")
    assert run(["verify", "spec.yaml", "--n", "4", "--device", "cpu", "--out", out, "-q"]) == 0
    text = (tmp_path / "out" / "vector-add.json").read_text(encoding="utf-8")
    assert "secret" not in text
    assert "$TOKITAI_CACHE/" in text
    monkeypatch.chdir(out)
    shutil.rmtree(tmp_path / "secret")
    again = ["reproduce", "vector-add.json", "--run-authors-code", "--out", "again", "-q"]
    assert run(again) == 0


def test_a_kernel_outside_of_home_names_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of the spec alone says it: that is the author's own word, under the spec's digest."""
    path = write_example(tmp_path / "mine")
    secret = tmp_path / "secret" / "kernels"
    secret.mkdir(parents=True)
    (path.parent / "vector_add.hip").rename(secret / "k.hip")
    (secret / "add.h").write_text("#define PLUS +\n")
    kernel = (secret / "k.hip").read_text().replace("a[i] + b[i]", "a[i] PLUS b[i]")
    (secret / "k.hip").write_text(f'#include "add.h"\n{kernel}')
    path.write_text(path.read_text().replace("vector_add.hip", str(secret / "k.hip")))
    monkeypatch.chdir(tmp_path)
    assert run(["verify", str(path), "--n", "4", "--device", "cpu", "--out", "out", "-q"]) == 0
    found = stage.read(tmp_path / "out" / "vector-add.json")
    (build,) = found.builds.values()
    assert build.source == "{elsewhere}/k.hip"
    assert list(build.header_texts) == ["{elsewhere}/add.h"]
    assert run(["check", "out/vector-add.json"]) == 0
    for kind in EVIDENCE_FORMATS:
        if kind not in ("json", "figures"):
            assert b"secret" not in render(found, kind), kind
    bare = msgspec.structs.replace(found, specs={})
    assert b"secret" not in msgspec.json.encode(bare)


def test_a_folder_with_marks_that_json_escapes_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for mark in ('"', "\\"):
        folder = tmp_path / f"some{mark}one"
        write_example(folder)
        assert run(["verify", str(folder / "spec.yaml"), "--device", "cpu", "-q"]) == 8
        text = next(Path("reports").glob("*.json")).read_text("utf-8")
        assert "cannot be included: ./" in text
        assert tmp_path.name not in text


def test_the_file_behind_a_link_is_named_as_the_spec_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in what the compiler says, and headers that lie beside the file."""
    folder, author = tmp_path / "spec", tmp_path / "author"
    write_example(folder)
    author.mkdir()
    kernel = next(folder.glob("*.hip"))
    (author / "real.hip").write_text(f'#include "beside.h"\n{kernel.read_text("utf-8")}')
    (author / "beside.h").write_text("static_assert(sizeof(int) == 3);\n")
    kernel.unlink()
    kernel.symlink_to(author / "real.hip")
    monkeypatch.chdir(folder)
    assert run(["verify", "spec.yaml", "--device", "cpu", "-q"]) != 0
    found = stage.read(next(Path("reports").glob("*.json")))
    text = stage.to_json(found)
    assert "beside.h:1" in text
    assert "author" not in text
    assert not any(b"/author" in render(found, kind) for kind in EVIDENCE_FORMATS)
