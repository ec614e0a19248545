"""The branch that AMD's compiler takes is judged, and what a compiler leaves out is no silence."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.runs import run
from tests.spec_example import example, write_example
from tokitai_cli import devices
from tokitai_cli.build.branches import line_ranges, lines_of, preprocessor
from tokitai_cli.build.dropped import refuse_dropped
from tokitai_cli.core.errors import BuildError
from tokitai_cli.core.linked_folders import NO_LINKS
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Verdict

SUM = "        c[i] = a[i] + b[i];\n"
GCC = shutil.which("g++")


def judged(folder: Path, condition: str, then: str, other: str, **options: Any) -> Evidence:
    """The example with two ways to compute the sum."""
    branches = f"#if {condition}\n{then}\n#else\n{other}\n#endif\n"
    path = write_example(folder, kernel=example("vector_add.hip").replace(SUM, branches))
    return run(path, folder / "out", shapes={"n": 100}, profile=["normal"], **options)


@pytest.mark.parametrize(
    "condition",
    [
        "defined(__HIP_PLATFORM_AMD__)",
        "defined(__HIP_DEVICE_COMPILE__) && __HIP_DEVICE_COMPILE__",
        "__HIPCC__ && HIP_VERSION_MAJOR == 6 && HIP_VERSION >= 60400000 && __HIP_ARCH_HAS_DOUBLES__",
    ],
)
def test_the_branch_of_amds_compiler_is_judged(tmp_path: Path, condition: str) -> None:
    wrong = judged(tmp_path / "a", condition, SUM.replace("+", "-"), SUM)
    assert wrong.verdict is Verdict.REFUTED
    right = judged(tmp_path / "b", condition, SUM, SUM.replace("+", "-"))
    assert right.verdict is Verdict.VERIFIED


def test_the_macros_follow_warp_size_and_architecture(tmp_path: Path) -> None:
    condition = "__AMDGCN_WAVEFRONT_SIZE__ == 64 && __gfx90a__ && __GFX9__ && !__gfx1101__"
    found = judged(
        tmp_path, condition, SUM, SUM.replace("+", "-"), warp_size=64, arch="gfx90a:xnack-"
    )
    assert found.verdict is Verdict.VERIFIED
    plain = devices.get("cpu").recipe(DeviceOptions(), {}, ()).branch
    assert plain["__AMDGCN_WAVEFRONT_SIZE__"] == "32"
    assert not any("gfx" in name.lower() for name in plain)


def test_lines_that_the_host_cannot_build_are_no_claim(new_path: Path) -> None:
    asked = "#define LANE __builtin_amdgcn_s_getreg(0)\n" + SUM.replace("[i]", "[i + 0 * LANE]")
    for cached in (False, True):
        found = judged(new_path, "__HIP_PLATFORM_AMD__", asked, SUM)
        assert found.verdict is Verdict.VERIFIED
        assert [*found.volatile.build_cached.values()] == [cached]
        (text,) = (one.text for one in found.non_claims if one.source == "build")
        assert text.endswith("the host cannot build: vector_add.hip:8")


def test_a_source_at_fault_is_told_by_its_own_error(tmp_path: Path) -> None:
    fault = SUM.replace(";", " oops;")
    both = judged(tmp_path / "a", "__HIPCC__", fault, fault)
    amd = judged(tmp_path / "b", "__HIPCC__", fault, "#error no other platform")
    for found in (both, amd):
        assert found.verdict is Verdict.BUILD_FAILED
        (record,) = found.builds.values()
        assert "vector_add.hip:7" in record.failed[0], record.failed


def test_what_the_preprocessor_took() -> None:
    text = (
        '# 0 "/x/k.hip"\n# 1 "/usr/include/a.h" 1 3 4\nint a;\n# 7 "/x/k.hip" 2\nint b;\n\nint c;\n'
        '# 3 "<built-in>"\nint d;\n'
    )
    assert lines_of(text, NO_LINKS) == {("/x/k.hip", 7), ("/x/k.hip", 9)}
    lines = [("/x/k.hip", line) for line in (9, 7, 8, 12)]
    assert line_ranges([*lines, ("/x/b.h", 1)]) == "b.h:1; k.hip:7-9, 12"
    command = [
        "g++",
        "-O2",
        "-MD",
        "-MF",
        "k.d",
        "-Wa,--MD,s",
        "-x",
        "c++",
        "-c",
        "harness.cpp",
        "-o",
        "k.o",
    ]
    want = ("g++", "-O2", "-x", "c++", "p.cpp", "-E", "-o", "p.i")
    assert preprocessor(command, "p.cpp", "p.i") == want


@pytest.mark.skipif(GCC is None, reason="no g++ on PATH")
def test_an_attribute_that_gcc_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(GCC))
    kernel = example("vector_add.hip").replace("    int i", "#pragma unroll\n    int i")
    fine = kernel.replace("__global__", "__attribute__((amdgpu_waves_per_eu(2, 4))) __global__")
    path = write_example(tmp_path / "a", kernel=fine)
    found = run(path, tmp_path, shapes={"n": 100}, profile=["normal"])
    assert found.verdict is Verdict.VERIFIED, found.reason
    four = "using four = float __attribute__((ext_vector_type(4)));\n"
    path = write_example(tmp_path / "b", kernel=kernel.replace("__global__", four + "__global__"))
    found = run(path, tmp_path, shapes={"n": 100}, profile=["normal"])
    assert found.verdict is Verdict.BUILD_FAILED
    assert "ignores the attribute ext_vector_type" in found.reason


@pytest.mark.parametrize(
    ("warning", "line", "name"),
    [
        ("\u2018ext_vector_type\u2019 attribute directive ignored", "", "ext_vector_type"),
        ("\u2018clang::swift\u2019 scoped attribute directive ignored", "", "clang::swift"),
        ("unknown attribute 'mine' ignored [-Wunknown-attributes]", "", "mine"),
        ("'mine' attribute ignored [-Wignored-attributes]", "", "mine"),
        ("ignoring \u2018#pragma float_control\u2019", "#pragma float_control(a)", "float_control"),
        ("unknown pragma ignored [-Wunknown-pragmas]", "#pragma clang attribute push", "attribute push"),
        ("unknown attribute 'amdgpu_waves_per_eu' ignored", "", ""),
        ("unknown pragma ignored [-Wunknown-pragmas]", "  # pragma unroll 4", ""),
        ("ignoring \u2018#pragma clang loop\u2019", "#pragma clang loop vectorize(enable)", ""),
        ("unused variable \u2018x\u2019 [-Wunused-variable]", "", ""),
    ],
)  # fmt: skip
def test_what_compilers_say_that_they_leave_out(
    tmp_path: Path, warning: str, line: str, name: str
) -> None:
    source = tmp_path / "k.hip"
    source.write_text(f"\n{line}\n")
    printed = f"In file included\n{source}:2:5: warning: {warning}\n"
    if not name:
        refuse_dropped(printed, "g++")
        return
    with pytest.raises(BuildError, match=f"g\\+\\+ ignores .*{name}") as caught:
        refuse_dropped(printed, "g++")
    assert caught.value.where is not None
    assert (caught.value.where.file, caught.value.where.line) == (source, 2)
    shipped = devices.get("cpu").recipe(DeviceOptions(), {}, ()).command
    folder = next(word[2:] for word in shipped if word.startswith("-I"))
    refuse_dropped(printed.replace(str(tmp_path), folder), "g++")
