"""A source is read once for all that ask, and again where it, its headers or the pass are others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec_example import write_example
from tokitai_cli.adequacy import advice
from tokitai_cli.cpp import preprocessor
from tokitai_cli.cpp.policy import CUDA, Pass, device_pass, host_pass, passes_of
from tokitai_cli.cpp.programs import Programs
from tokitai_cli.cpp.reach import reached
from tokitai_cli.run.specs import load

_KERNEL = "__global__ void k(float* y) { y[0] = 1; }\n"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the sources that were preprocessed, one for each time."""
    names: list[str] = []
    tokens = preprocessor.Preprocessor.tokens

    def counted(self: preprocessor.Preprocessor, source: Path, *rest: object) -> object:
        if source != Path("-"):  # of the module's own arithmetic
            names.append(source.name)
        return tokens(self, source, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(preprocessor.Preprocessor, "tokens", counted)
    return names


def test_a_program_is_read_once_for_passes_that_differ_in_nothing_it_speaks_of(
    tmp_path: Path, read: list[str]
) -> None:
    source = tmp_path / "k.hip"
    source.write_text(_KERNEL)
    programs = Programs()
    first = programs.of(source, [])
    for given in passes_of("cpu", "", False, {"TOKITAI_WARP_SIZE": "64"}, {}):
        assert programs.read(source, [], given) is first
    assert programs.read(source, [], Pass("", device_pass(False), {})) is first
    assert read == ["k.hip"]


@pytest.mark.parametrize(
    "text",
    [
        "#if N > 1\n" + _KERNEL + "#endif\n",
        _KERNEL.replace("1;", "N;"),
        "#define VALUE(a) a##N\n" + _KERNEL.replace("1;", "VALUE();"),
        "#define M (N + 1)\n" + _KERNEL.replace("1;", "M;"),
    ],
)
def test_a_macro_that_the_text_speaks_of_makes_another_program(tmp_path: Path, text: str) -> None:
    source = tmp_path / "k.hip"
    source.write_text(text)
    programs = Programs()
    one, two = (programs.of(source, [], {"N": value}) for value in "12")
    assert one is not two
    assert programs.of(source, [], {"N": "2"}) is two


def test_a_macro_of_another_macros_value_makes_another_program(tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(_KERNEL.replace("1;", "M;"))
    programs = Programs()
    one, two = (programs.of(source, [], {"M": "N", "N": value}) for value in "12")
    assert one is not two


def test_a_name_that_conditions_ask_for_makes_another_program(tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(f"#ifdef __HIP_DEVICE_COMPILE__\n{_KERNEL}#endif\n")
    programs = Programs()
    known = {"__HIP_DEVICE_COMPILE__": "1"}
    host, device = (
        programs.read(source, [], Pass("", host_pass(False), one)) for one in ({}, known)
    )
    assert not host.trees[0].kernels
    assert device.trees[0].kernels


@pytest.mark.parametrize("changed", ["k.hip", "own.h", "near/own.h", "rest.hip"])
def test_a_file_that_changes_or_comes_in_front_is_read_anew(tmp_path: Path, changed: str) -> None:
    (tmp_path / "near").mkdir()
    (tmp_path / "far").mkdir()
    source = tmp_path / "k.hip"
    source.write_text(
        f"#include <own.h>\n__device__ float more(float);\n{_KERNEL.replace('1;', 'more(VALUE);')}"
    )
    (tmp_path / "far" / "own.h").write_text("#define VALUE 1\n")
    (tmp_path / "rest.hip").write_text("__device__ float more(float x) { return x; }\n")
    folders = [tmp_path / "near", tmp_path / "far"]
    programs = Programs()
    first = programs.of(source, folders)
    assert first.joined == [tmp_path / "rest.hip"]
    assert programs.of(source, folders) is first
    place = tmp_path / ("far/own.h" if changed == "own.h" else changed)
    before = place.read_text() if place.exists() else ""
    place.write_text(f"{before}// changed\n")
    assert programs.of(source, folders) is not first


def test_headers_in_front_are_read_first_and_lines_stay(tmp_path: Path) -> None:
    source, header = tmp_path / "k.cu", tmp_path / "front.h"
    source.write_text(_KERNEL.replace("1;", "FROM_FRONT;"))
    header.write_text("#define FROM_FRONT 7\n\n\n")
    given = Pass("", host_pass(source.suffix in CUDA), {})
    program = Programs().read(source, [], given, [header])
    (kernel,) = program.trees[0].kernels
    assert program.trees[0].place(kernel.node) == (source, 1)
    assert b"= 7;" in program.sources[0].unit.text
    assert program.files == [source, header]


def test_what_kernels_reach_does_not_hang_on_what_was_asked_before(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(
        "struct Pair { float x; void show() { std::vector<int> all; } };\n"
        "__global__ void first(float* y) { Pair p{1}; y[0] = p.x; }\n"
        "__global__ void second(float* y) { Pair p{2}; y[0] = p.x; }\n"
    )
    parts = [part for one in Programs().of(source, []).sources for part in one.parts]
    before = [(set(part.words), list(part.cuts)) for part in parts]
    first = reached(parts, ["first"])
    reached(parts, ["second"])
    again = reached(parts, ["first"])
    assert [(part.words, part.cuts) for part in parts] == before
    assert first.keys() == again.keys()
    assert {at: part.words for at, part in first.items()} == {
        at: part.words for at, part in again.items()
    }


def test_advice_reads_a_source_once(tmp_path: Path, read: list[str]) -> None:
    loaded = load(write_example(tmp_path))
    assert read
    before = len(read)
    list(advice.advise(loaded))
    assert len(read) == before == 1
