"""A build is made again where anything that it read has changed, headers or not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.runs import run
from tests.spec_example import write_example
from tokitai_cli import devices
from tokitai_cli.build.inputs import manifest_of, traced
from tokitai_cli.core.errors import BuildError
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.verdict import Verdict

COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on PATH")
ADDED = 'extern "C" float added(float, float);\n'


def spec_with(folder: Path, flags: str, term: str, head: str = ADDED) -> Path:
    path = write_example(folder)
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("    oracle:", f"    flags: {flags}\n    oracle:"), encoding="utf-8"
    )
    kernel = folder / "vector_add.hip"
    text = kernel.read_text(encoding="utf-8").replace("a[i] + b[i]", term)
    kernel.write_text(text.replace("__global__", head + "__global__"), encoding="utf-8")
    return path


def compiled(folder: Path, sign: str, made: str) -> None:
    """An object, or a library of it, in `folder`."""
    folder.mkdir(exist_ok=True)
    source = folder / "m.cpp"
    source.write_text(f'extern "C" float added(float a, float b) {{ return a {sign} b; }}\n')
    target = folder / "mine.o"
    subprocess.run([str(COMPILER), "-O1", "-fPIC", "-c", source, "-o", target], check=True)
    if made.endswith(".a"):
        subprocess.run(["ar", "rc", folder / made, target], check=True)


def verdict(path: Path) -> tuple[Verdict, bool]:
    found = run(path, path.parent / "out", shapes={"n": 100}, profile=["normal"])
    (cached,) = found.volatile.build_cached.values()
    return found.verdict, cached


def test_an_object_that_a_flag_links(new_path: Path) -> None:
    path = spec_with(new_path / "mine", '["-L.", "-l:mine.o"]', "added(a[i], b[i])")
    compiled(path.parent, "+", "mine.o")
    assert verdict(path) == (Verdict.VERIFIED, False)
    assert verdict(path) == (Verdict.VERIFIED, True)
    compiled(path.parent, "-", "mine.o")
    assert verdict(path) == (Verdict.REFUTED, False)


def test_a_library_that_comes_to_lie_in_front_of_another(new_path: Path) -> None:
    flags = "[-Lfirst, -Lsecond, -lown]"
    path = spec_with(new_path / "mine", flags, "added(a[i], b[i])")
    compiled(path.parent / "second", "+", "libown.a")
    assert verdict(path) == (Verdict.VERIFIED, False)
    compiled(path.parent / "first", "-", "libown.a")
    assert verdict(path) == (Verdict.REFUTED, False)


def test_a_file_that_the_assembler_takes_in(new_path: Path) -> None:
    head = '#include "part.h"\n'
    path = spec_with(new_path / "mine", "[-g0]", "a[i] + sign_word * b[i]", head)
    data = path.parent / "sign.bin"
    # Said in two parts, which no search of the text would find.
    (path.parent / "part.h").write_text(
        '__asm__(".section .rodata\\n.globl sign_word\\nsign_word:\\n.inc" "bin '
        f'\\"{data}\\"\\n.text\\n");\nextern "C" const int sign_word;\n'
    )
    data.write_bytes(b"\1\0\0\0")
    if devices.get("cpu").recipe(DeviceOptions(), {}, ()).assembly:
        found = run(path, new_path / "out", shapes={"n": 100}, profile=["normal"])
        assert "the assembler includes a file here" in found.reason
        return
    assert verdict(path) == (Verdict.VERIFIED, False)
    data.write_bytes(b"\2\0\0\0")
    assert verdict(path) == (Verdict.REFUTED, False)


def test_what_no_list_names_is_refused(new_path: Path) -> None:
    source = new_path / "k.hip"
    source.write_text('// one\n__asm__(".incbin \\"a.bin\\"");\n')
    (new_path / "k.d").write_text(f"k.o: {source}\n")
    folder = new_path / "build"
    folder.mkdir()
    (folder / "k.d").write_text(f"k.o: {source}\n")
    with pytest.raises(BuildError, match=r"k\.hip:2: the assembler includes a file here"):
        manifest_of(source, ["clang++", "-c", str(source)], folder, ["k.d"])
    told = ["g++", "-Wa,--MD,k.s.d", "-c", str(source)]
    assert manifest_of(source, told, folder, ["k.d"]).headers == {}


def test_files_that_a_source_asks_for_are_read_within_limits(new_path: Path) -> None:
    head = '#if __has_include("/dev/zero") && !__has_include("none.h")\n#define SIGN +\n'
    head += "#else\n#define SIGN -\n#endif\n"
    path = spec_with(new_path / "mine", "[]", "a[i] SIGN b[i]", head)
    assert verdict(path) == (Verdict.VERIFIED, False)
    assert verdict(path) == (Verdict.VERIFIED, True)
    (path.parent / "none.h").touch()
    assert verdict(path) == (Verdict.REFUTED, False)


@pytest.mark.parametrize(
    ("ask", "flags", "cached"),
    [
        ('#define HAS(x) __has_include(x)\n#if HAS("tune.h")', "[]", False),
        ("#if HAS(tune.h)", "['-DHAS(x)=__has_include(<x>)', -I.]", False),
        ("#if HAS", "['-DHAS=__has_include(<tune.h>)', -I.]", True),
    ],
)
def test_files_that_a_macro_asks_for_are_asked_for_anew(
    new_path: Path, ask: str, flags: str, cached: bool
) -> None:
    """Whether the file is there decides, and no list of what was read can name it."""
    head = f"{ask}\n#define SIGN -\n#else\n#define SIGN +\n#endif\n"
    path = spec_with(new_path / "mine", flags, "a[i] SIGN b[i]", head)
    assert verdict(path) == (Verdict.VERIFIED, False)
    assert verdict(path) == (Verdict.VERIFIED, cached)
    (path.parent / "tune.h").touch()
    assert verdict(path) == (Verdict.REFUTED, False)


def test_headers_behind_the_systems_are_the_users_own(new_path: Path) -> None:
    header = new_path / "h" / "op.h"
    header.parent.mkdir()
    header.write_text("#define SIGN +\n")
    os.utime(header, (1700000000, 1700000000))
    head = "#include <op.h>\n"
    path = spec_with(new_path / "mine", "[-idirafter../h]", "a[i] SIGN b[i]", head)
    assert verdict(path) == (Verdict.VERIFIED, False)
    found = run(path, path.parent / "out", shapes={"n": 100})
    (build,) = found.builds.values()
    assert list(build.header_texts.values()) == ["#define SIGN +\n"], build.headers
    header.write_text("#define SIGN -\n")  # of the same size and time
    os.utime(header, (1700000000, 1700000000))
    assert verdict(path) == (Verdict.REFUTED, False)


def test_what_a_linker_traces(new_path: Path) -> None:
    folder = new_path / "build"
    folder.mkdir()
    for name in ("a.o", "liba.a", "build/child.o"):
        (new_path / name).touch()
    printed = (
        f"child.o\n{new_path}/a.o\n({new_path}/liba.a)x.o\n{new_path}/liba.a(y.o)\na warning\n"
    )
    assert traced(printed, folder) == ([new_path / "a.o", new_path / "liba.a"], "a warning\n")


def test_a_source_beside_it_that_defines_what_it_declares(new_path: Path) -> None:
    head = "__device__ float added(float, float);\nint main() { return 0; }\n"
    path = spec_with(new_path / "mine", "[]", "added(a[i], b[i])", head)
    more, other = path.parent / "more.hip", path.parent / "again.hip"

    def define(file: Path, sign: str) -> None:
        file.write_text(f"__device__ float added(float a, float b) {{ return a {sign} b; }}\n")

    define(more, "+")
    assert verdict(path) == (Verdict.VERIFIED, False)
    assert verdict(path) == (Verdict.VERIFIED, True)
    define(more, "-")
    assert verdict(path) == (Verdict.REFUTED, False)
    define(more, "+")
    assert verdict(path) == (Verdict.VERIFIED, True)
    define(other, "-")  # which of the two is meant, none tells
    assert run(path, path.parent / "out", shapes={"n": 100}).verdict is Verdict.BUILD_FAILED
    other.unlink()
    assert verdict(path) == (Verdict.VERIFIED, True)
