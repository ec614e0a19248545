"""What is read of C++ text without a compiler, and which compiler flags a spec may give."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tokitai_cli.core import flags
from tokitai_cli.cpp import kernel_names, lexing, source_text


@pytest.mark.parametrize(
    "name",
    [
        "k",
        "space::k",
        "::k",
        "k<float, 4>",
        "a::b::k<std::uint8_t, 16, other<int>>",
        "k <true>",
        "k <>",
        "k<-1>",
        "shift< -1 >",
        "k<float*>",
        "k<const float&, unsigned int>",
        "k<(1 << 4), 2 * 3>",
        "k<sizeof(float[4])>",
        "k<other<1>>",
        "k(float*, const int *)",
        "a::k<b<1>> (c<float> d, unsigned)",
    ],
)
def test_kernel_names(name: str) -> None:
    assert kernel_names.is_kernel_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "k;",
        "k()",
        "k<",
        "k<1",
        "k<1>>",
        "k><",
        "k<(1>)",
        "k<)(>",
        "k<a>(b)<c>",
        "k(a<b)",
        "k((*)(int))",
        "k(a);",
        "1k",
        "k-1",
        'k"',
        'k<"">',
        "k\n",
        "k<\n>",
        "k<a;b>",
        "k<a//b>",
        "k<1>x",
        "é",
    ],
)
def test_what_is_no_kernel_name(name: str) -> None:
    assert not kernel_names.is_kernel_name(name)


def test_names_in_quotes_are_told_in_their_order() -> None:
    text = b"""#include "a.h"
#if __has_include("b.h") || __has_include_next(<c.h>)
  # include_next "d.h"
#endif
#include <e.h>
    #embed "f.bin"
"""
    assert lexing.quoted_names(text) == ["a.h", "b.h", "d.h", "f.bin"]
    assert lexing.probed(text) == {"b.h", "c.h"}


@pytest.mark.parametrize(
    ("text", "names", "unseen"),
    [
        (b'__has_include /* a */ ("x.h")', {"x.h"}, False),
        (b"__has_include \\\n(<x.h>)", {"x.h"}, False),
        (b'__has_inc\\\r\nlude("x.h")', {"x.h"}, False),
        (b'#ifdef __has_include\n#if __has_include("x.h")', {"x.h"}, False),
        (b'#if defined(__has_include) && __has_include("x.h")', {"x.h"}, False),
        (b"#if __has_builtin(x) || __has_cpp_attribute(y) || __has_feature(z)", set(), False),
        (b"#define HAS(x) __has_include(x)", set(), True),
        (b"#define HAS(x) __has_include(<x>)", {"x"}, True),
        (b"#if __has_include(NAME)", set(), True),
        (b"#define JOIN __has_ ## include", set(), True),
        (b'#if __has_include("x.h") || __has_embed(NAME)', {"x.h"}, True),
    ],
)
def test_files_that_a_text_asks_for(text: bytes, names: set[str], unseen: bool) -> None:
    assert lexing.probed(text) == names
    assert lexing.probes_unseen(text) == unseen


def test_only_files_of_some_size_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_bytes(b"int a;")
    os.mkfifo(tmp_path / "pipe.h")
    with (tmp_path / "large.h").open("wb") as file:
        file.truncate(source_text.MAX_BYTES + 1)
    assert source_text.read(tmp_path / "a.h") == b"int a;"
    for name in ("pipe.h", "large.h", "none.h", "/dev/zero", "a\0b", "."):
        assert source_text.read(tmp_path / name) is None


def test_headers_that_include_each_other_are_read_once(tmp_path: Path) -> None:
    names = "abcd"
    for name in names:
        (tmp_path / name).mkdir()
        lines = [f'#include "../{other}/../{other}/{other}.h"\n' for other in names]
        (tmp_path / name / f"{name}.h").write_text(f"// {name}\n" + "".join(lines))
    source = tmp_path / "k.hip"
    source.write_text('#include "a/a.h"\n#include "/dev/zero"\n')
    texts = list(source_text.own_texts(source))
    assert sorted(text[:5].strip() for text in texts) == ["#incl", "// a", "// b", "// c", "// d"]


@pytest.mark.parametrize(
    "flag",
    [
        *("-O2", "-Ofast", "-ffast-math", "-ffp-contract=off", "-fsanitize=address", "-fopenmp"),
        *("-march=native", "-munsafe-fp-atomics", "-Wall", "-Wno-unused", "-std=c++20", "-g"),
        *("-DX", "-DX=1", "-DX(a)=a", "-UNDEBUG", "-Iinclude", "-isystem/opt/x", "-Llib", "-lm"),
        *("-l:mine.o", "-iquotea", "-pthread", "--param=max-unroll-times=2", "-Wl,-z,now"),
        *("--expt-relaxed-constexpr", "-use_fast_math", "-fmad=false"),
    ],
)
def test_flags_of_a_spec(flag: str) -> None:
    assert flags.fault(flag) == ("", "")


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        *((flag, "is not a flag") for flag in ("", "x", "@flags", "-O2 -g", "-I{output}", "a.o", "-")),
        *((f"-fsanitize={one}", "GPU threads") for one in ("thread", "undefined,memory")),
        *((flag, "cannot be given") for flag in ("-S", "-E", "-c", "-oa", "-MD", "-xc")),
        *((flag, "cannot be given") for flag in ("-specs=a", "--specs=a", "-Ba", "-MFa", "-v")),
        *((flag, "cannot be given") for flag in ("--sysroot=a", "--config=a")),
        *((flag, "cannot track") for flag in ("-fplugin=a.so", "-fpass-plugin=a.so", "-fuse-ld=mine")),
        *((flag, "cannot track") for flag in ("-fprofile-use=a", "-fdump-tree-all", "-Wp,-include,a")),
        *((flag, "cannot track") for flag in ("-Wa,-Ia", "-Wl,-T,a", "-Wl,@a", "-Wl,a.o", "-Xlinker")),
        *((flag, "not a macro of your own") for flag in ("-DTOKITAI=1", "-D__X", "-U__HIPCC__", "-D1")),
        ("-D_LIBCPP_HARDENING_MODE=1", "not a macro of your own"),
    ],
)  # fmt: skip
def test_flags_that_are_refused(flag: str, words: str) -> None:
    message, mend = flags.fault(flag)
    assert words in message
    assert mend


def test_paths_in_flags_start_at_the_folder() -> None:
    given = ["-Iinclude", "-I/opt/x", "-L../lib", "-iquoteown", "-lm", "-DI=a", "-O2"]
    assert flags.resolved(given, Path("/a/b")) == (
        *("-I/a/b/include", "-I/opt/x", "-L/a/lib", "-iquote/a/b/own", "-lm", "-DI=a", "-O2"),
    )
