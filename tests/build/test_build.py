"""Building with a small harness of its own: the cache, what is refused, and what a failure tells."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.run_cases import integer, make_case, make_cases
from tokitai_cli import build as build_stage
from tokitai_cli.build import Artifact, cache, cache_store, entries, failed_record, harness_request
from tokitai_cli.build.compiler import first_errors
from tokitai_cli.build.inputs import read_depfile, shadows
from tokitai_cli.build.scan import scan
from tokitai_cli.core import flags, process, resources, storage
from tokitai_cli.core.errors import BuildError, NotRunError, SpecError
from tokitai_cli.core.model.case import BufferArg, BufferPlan, Case, Role, ScalarValue
from tokitai_cli.core.model.device import Recipe
from tokitai_cli.core.model.events import BuildFinished, BuildStarted, Event
from tokitai_cli.core.model.harness import KernelArg
from tokitai_cli.cpp.source.device_memory import memory_of
from tokitai_cli.cpp.whole import program_of

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = Path(__file__).parents[1] / "build_fixtures" / "kernels"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on PATH")
BUFFERS = (
    BufferPlan("x", Role.INPUT, "float16", (8,)),
    BufferPlan("y", Role.OUTPUT, "float32", (8,)),
)


class Bench:
    """A folder with a kernel, a header, the harness's folder and a cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernels = folder / "kernels"
        shutil.copytree(FIXTURES, self.kernels)
        self.source = folder / "k.hip"
        self.header = folder / "mine.hpp"
        self.header.write_text("static const int of_header = 1;\n")
        self.write('#include "mine.hpp"\nstatic const int kernel_value = of_header;\n')
        self.events: list[Event] = []

    def write(self, text: str) -> None:
        self.source.write_text(text)

    def case(self, kernel: str = "k") -> Case:
        return make_case(self.source, BUFFERS, kernel)

    def recipe(self, *flags: str, environment: dict[str, str] | None = None) -> Recipe:
        compiler = str(COMPILER)
        return Recipe(
            device="cpu",
            arch="x86_64",
            compiler=Path(compiler),
            command=(
                *(compiler, "-std=c++17", "-O0", f"-I{self.kernels / 'host'}", *flags),
                *("-MD", "-MF", "{depfile}", "-x", "c++", "{source}", "-o", "{output}"),
            ),
            environment={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **(environment or {})},
            source_suffix=".cpp",
            version_command=(compiler, "--version"),
            wrap_commands=((compiler, "-print-prog-name=cc1plus"),),
        )

    def build(self, *flags: str) -> Artifact:
        request = harness_request(self.case())
        return build_stage.build(request, self.recipe(*flags), listener=self.events.append)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    monkeypatch.setattr(resources, "kernels_dir", lambda: made.kernels)
    monkeypatch.setenv("TOKITAI_CACHE", str(tmp_path / "cache"))
    return made


def code_of(artifact: Artifact) -> int:
    return subprocess.run([artifact.path], check=False).returncode


@needs_compiler
def test_a_second_build_is_the_first(bench: Bench) -> None:
    first = bench.build()
    second = bench.build()
    assert code_of(first) == 4
    assert (first.cached, second.cached) == (False, True)
    assert first.path == second.path
    assert first.record == second.record
    assert first.note == second.note == ""
    kinds = [type(event) for event in bench.events]
    assert kinds == [BuildStarted, BuildFinished, BuildFinished]
    record = first.record
    assert record.compiler is not None
    assert record.compiler.path == str(COMPILER)
    assert record.compiler.version
    assert len(record.compiler.sha256) == len(record.artifact_sha256) == 64
    assert {str(bench.header), str(bench.kernels / "host" / "shared.hpp")} <= set(record.headers)
    assert not any("tmp" in Path(path).parts[-2] for path in record.headers)
    assert record.command[-1] == "child"
    assert record.failed == []
    assert first.log_path.read_text().startswith("$ ")


@needs_compiler
def test_a_cold_build_gives_the_same_bytes(bench: Bench) -> None:
    first = bench.build("-g1")
    cache.clear()
    second = bench.build("-g1")
    assert not second.cached
    assert second.record == first.record
    assert second.key == first.key


def change_source(bench: Bench) -> None:
    bench.write("static const int kernel_value = 5;\n")


def change_header(bench: Bench) -> None:
    bench.header.write_text("static const int of_header = 2;\n")


def change_shared_header(bench: Bench) -> None:
    path = bench.kernels / "host" / "shared.hpp"
    path.write_text("static const int shared_value = 9;\n")


def change_harness(bench: Bench) -> None:
    path = bench.kernels / "harness" / "harness.cpp.j2"
    path.write_text(path.read_text().replace("return", "return 20 +"))


@needs_compiler
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (change_source, 8),
        (change_header, 5),
        (change_shared_header, 10),
        (change_harness, 24),
    ],
)
def test_any_change_of_text_builds_anew_and_back_again(
    bench: Bench, change: Callable[[Bench], None], code: int
) -> None:
    paths = [path for path in bench.folder.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in paths}
    assert code_of(bench.build()) == 4
    change(bench)
    changed = bench.build()
    assert not changed.cached
    assert code_of(changed) == code
    for path, data in before.items():
        path.write_bytes(data)
    back = bench.build()
    assert back.cached
    assert code_of(back) == 4


@needs_compiler
def test_a_header_that_would_be_found_earlier_builds_anew(bench: Bench) -> None:
    earlier = bench.folder / "earlier"
    base = bench.recipe()
    command = (base.command[0], f"-I{earlier}", *base.command[1:])
    recipe = msgspec.structs.replace(base, command=command)
    request = harness_request(bench.case())
    assert code_of(build_stage.build(request, recipe)) == 4
    earlier.mkdir()
    (earlier / "shared.hpp").write_text("static const int shared_value = 30;\n")
    rebuilt = build_stage.build(request, recipe)
    assert not rebuilt.cached
    assert code_of(rebuilt) == 31


@needs_compiler
def test_flags_environment_features_and_compiler_are_in_the_key(bench: Bench) -> None:
    request = harness_request(bench.case())
    base = bench.recipe()
    keys = {build_stage.build(request, base).key}
    for other in (
        bench.recipe("-DANYTHING=1"),
        bench.recipe(environment={"LANG": "C"}),
        msgspec.structs.replace(base, resolved_features="avx512f"),
        msgspec.structs.replace(base, arch="other"),
        msgspec.structs.replace(base, wraps=(bench.header,)),
    ):
        built = build_stage.build(request, other)
        assert not built.cached
        keys.add(built.key)
    assert len(keys) == 6
    moved = msgspec.structs.replace(base, environment={**base.environment, "TMPDIR": "/tmp"})
    assert build_stage.build(request, moved).cached


@needs_compiler
def test_a_compiler_that_changes_is_asked_again(bench: Bench) -> None:
    script = bench.folder / "compiler"

    def install(version: str) -> None:
        script.write_text(
            f'#!/bin/sh\nif [ $1 = --version ]; then echo {version}; else exec {COMPILER} "$@"; fi\n'
        )
        script.chmod(0o755)

    base = bench.recipe()
    recipe = msgspec.structs.replace(
        base,
        compiler=script,
        command=(str(script), *base.command[1:]),
        version_command=(str(script), "--version"),
        wrap_commands=(),
    )
    request = harness_request(bench.case())
    versions = []
    for version in ("one", "two-longer", "two-longer"):
        install(version)
        built = build_stage.build(request, recipe)
        assert built.record.compiler is not None
        versions.append((built.record.compiler.version, built.cached))
    assert versions == [("one", False), ("two-longer", False), ("two-longer", True)]


@needs_compiler
@pytest.mark.parametrize("damage", ["flip", "cut", "missing", "record", "mode", "manifest"])
def test_a_damaged_entry_is_rebuilt_with_a_note(bench: Bench, damage: str) -> None:
    good = bench.build()
    record = good.path.with_name("record.json")
    if damage == "flip":
        data = bytearray(good.path.read_bytes())
        data[len(data) // 2] ^= 1
        good.path.write_bytes(data)
    elif damage == "cut":
        good.path.write_bytes(good.path.read_bytes()[:100])
    elif damage == "missing":
        good.path.unlink()
    elif damage == "record":
        record.write_text(record.read_text().replace('"device":"cpu"', '"device":"gpu"'))
    elif damage == "mode":
        good.path.chmod(0o600)
    else:
        (manifest,) = cache.location().part("manifests").glob("*/*.json")
        manifest.write_text("{")
    rebuilt = bench.build()
    assert not rebuilt.cached
    assert "damaged entry of the build cache was discarded" in rebuilt.note
    assert code_of(rebuilt) == 4
    assert bench.build().cached
    assert list(cache.location().part("tmp").iterdir()) == []


@needs_compiler
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("static const int kernel_value = oops;\n", "oops"),
        ('#include "missing.hpp"\n', "missing.hpp"),
        ("extern int outside; static const int kernel_value = outside + 0;\n", "outside"),
    ],
)
def test_a_failing_build_tells_the_first_error(bench: Bench, text: str, words: str) -> None:
    bench.write("// a comment\n" + text)
    with pytest.raises(BuildError) as caught:
        bench.build()
    error = caught.value
    assert words in str(error)
    assert words in error.log
    assert error.first_errors
    assert error.log_path is not None
    assert error.log in error.log_path.read_text()
    if error.where is not None:
        assert error.where.file == bench.source
        assert error.where.line == 2
    record = failed_record(harness_request(bench.case()), bench.recipe(), error)
    assert record.failed == list(error.first_errors)
    assert record.source_sha256
    assert list(cache.location().part("tmp").iterdir()) == []
    assert cache.entries() == []
    bench.write("static const int kernel_value = 1;\n")
    assert code_of(bench.build()) == 4


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("__global__ void k() { extern __shared__ float tile[]; }", ["tile"]),
        (
            "extern __shared__ __align__(16) unsigned char a[]; extern __shared__ int b [ ] ;",
            ["a", "b"],
        ),
        ("__shared__ extern float late[];", ["late"]),
        ("__shared__ float fixed[64]; extern float other[];", []),
        ("// extern __shared__ float no[];\n/* extern __shared__ int no2[]; */", []),
        ("HIP_DYNAMIC_SHARED(float, macro)", ["macro"]),
        (
            "namespace a { namespace b::c { void f() { extern __shared__ int t[]; } } }\n"
            "void g() { extern __shared__ int u[]; }",
            ["_ZN1a1b1c1tE", "u"],
        ),
        (
            "namespace a { namespace { void f() { extern __shared__ int w[]; } } }",
            ["_ZN1a12_GLOBAL__N_11wE"],
        ),
        ("namespace { int x; } namespace n { int y; } extern __shared__ int v[];", ["v"]),
        ('#include "other.hpp"\n#include "../none.hpp"\n', ["included"]),
        ('#include "k.hip"\nextern __shared__ int w[];\n', ["w"]),
    ],
)
def test_dynamic_shared_memory_is_named_for_the_linker(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    (tmp_path / "other.hpp").write_text("extern __shared__ double included[];\n")
    (tmp_path / "k.hip").write_text(text)
    assert memory_of([program_of(tmp_path / "k.hip", ())]).dynamic_shared == names


@needs_compiler
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('asm volatile("s_nop 0");', "asm"),
        ('__asm__ ("nop");', "__asm__"),
        ("x = __builtin_amdgcn_mfma_f32_16x16x16f16(a);", "__builtin_amdgcn_mfma"),
        ("x = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a);", "__builtin_amdgcn_wmma"),
    ],
)
def test_what_the_cpu_cannot_run_is_refused_with_its_line(
    bench: Bench, line: str, name: str
) -> None:
    bench.write(f"// asm(1)\n/* __asm__(2) */\n{line}\n")
    whole = harness_request(bench.case(), ())
    with pytest.raises(BuildError, match=f"the cpu device cannot run {name}") as caught:
        build_stage.build(whole, bench.recipe())
    assert caught.value.where is not None
    assert caught.value.where.line == 3


@needs_compiler
def test_what_the_compiler_stumbles_over_is_named(bench: Bench) -> None:
    line = "__global__ void child(); __global__ void k() { child<<<1, 2>>>(); }"
    bench.write(f"// k<<<1, 2>>>()\n{line}\n")
    named = "the cpu device cannot run <<<: a launch by a kernel"
    with pytest.raises(BuildError, match=named) as caught:
        build_stage.build(harness_request(bench.case(), ()), bench.recipe())
    assert caught.value.where is not None
    assert caught.value.where.line == 2


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("#define LAUNCH k<<<1, 2>>>()", "<<<"),
        ("texture<float, 1, cudaReadModeElementType> image;", "texture"),
        ("y = tex1Dfetch<float>(image, 3);", "tex1Dfetch"),
    ],
)
def test_what_the_compiler_may_pass_over_explains_a_failure(text: str, name: str) -> None:
    assert [(one.name, one.conditional) for one in scan(text, "cpu")] == [(name, True)]


def test_textures_that_the_spec_binds_explain_no_failure() -> None:
    assert scan("texture<float> image;", "cpu", textures=True) == []


def test_what_only_looks_like_it_is_not_refused() -> None:
    text = """
    // asm("x"); __builtin_amdgcn_mfma(1)
    const char* a = "asm(1)"; const char* b = R"x(asm("1"))x";
    int asm_count = 1'000; x = __builtin_amdgcn_readlane(1, 2); /*
    asm("y") */ int wasm(int); int y = wasm(2);
    """
    assert scan(text, "cpu") == []
    found = scan("x = __builtin_amdgcn_readlane(1, 2) + __builtin_amdgcn_s_getreg(3);", "cpu")
    assert [one.name for one in found] == ["__builtin_amdgcn_s_getreg"]
    assert scan('asm("x");', "gfx") == []


@needs_compiler
def test_inside_a_conditional_it_only_explains_a_failure(bench: Bench) -> None:
    text = '#ifdef {}\nint f() {{ asm("what is this"); return 0; }}\n#endif\n'
    rest = "static const int kernel_value = 1;\n"
    bench.write(text.format("__AMDGCN__") + rest)
    assert code_of(bench.build()) == 4
    bench.write(text.format("__cplusplus") + rest)
    with pytest.raises(BuildError, match=r"k\.hip:2 holds asm what, inline assembly"):
        bench.build()


def test_an_include_guard_is_no_conditional() -> None:
    guarded = '#ifndef MINE\n#define MINE\nasm("x");\n#endif\n'
    assert [finding.conditional for finding in scan(guarded, "cpu")] == [False]
    assert [finding.conditional for finding in scan('#if X\nasm("x");\n#endif\n', "cpu")] == [True]


@needs_compiler
def test_cuda_alone_is_refused_where_only_hip_is_known(bench: Bench) -> None:
    bench.source = bench.folder / "k.cu"
    bench.write("static const int kernel_value = 1;\n")
    request = harness_request(bench.case())
    recipe = msgspec.structs.replace(bench.recipe(), device="rocm")
    with pytest.raises(BuildError, match=r"k\.cu is CUDA only: .*hipify-perl"):
        build_stage.build(request, recipe)
    assert code_of(build_stage.build(request, bench.recipe())) == 4
    bench.write("#include <hip/hip_runtime.h>\nstatic const int kernel_value = 1;\n")
    with contextlib.suppress(BuildError):
        build_stage.build(request, recipe)


@needs_compiler
def test_a_compiler_that_takes_too_long_is_ended(bench: Bench) -> None:
    script = bench.folder / "slow"
    script.write_text("#!/bin/sh\nsleep 60\n")
    script.chmod(0o755)
    base = bench.recipe()
    recipe = msgspec.structs.replace(base, command=(str(script), *base.command[1:]))
    with pytest.raises(BuildError, match="was stopped after 0 s"):
        build_stage.build(harness_request(bench.case()), recipe, timeout=0.3)


@needs_compiler
@pytest.mark.parametrize(
    "said",
    [
        "harness.cpp:50:1: fatal error: error writing to cc.s: No space left on device",
        "g++: fatal error: Killed signal terminated program cc1plus",
        "cc1plus: out of memory allocating 65536 bytes after a total of 0 bytes",
        "virtual memory exhausted: Cannot allocate memory",
        "SIGKILL (killed)",
    ],
)
def test_what_a_compiler_lacks_is_no_fault_of_the_kernel(bench: Bench, said: str) -> None:
    script = bench.folder / "failing"
    end = "kill -9 $$" if said.startswith("SIGKILL") else f"echo '{said}' >&2; exit 1"
    script.write_text(f"#!/bin/sh\n{end}\n")
    script.chmod(0o755)
    base = bench.recipe()
    recipe = msgspec.structs.replace(base, command=(str(script), *base.command[1:]))
    with pytest.raises(NotRunError, match=re.escape(said)):
        build_stage.build(harness_request(bench.case()), recipe)


@needs_compiler
def test_a_compiler_that_is_not_there(bench: Bench) -> None:
    recipe = msgspec.structs.replace(
        bench.recipe(), compiler=Path("/nowhere/c++"), version_command=("/nowhere/c++", "-v")
    )
    with pytest.raises(BuildError, match="does not run: /nowhere/c\\+\\+: cannot start"):
        build_stage.build(harness_request(bench.case()), recipe)


def test_a_source_that_is_not_there(bench: Bench) -> None:
    bench.source.unlink()
    with pytest.raises(BuildError, match="does not exist"):
        harness_request(bench.case())
    bench.source.mkdir()
    with pytest.raises(BuildError, match="is a folder"):
        harness_request(bench.case())


def test_a_path_that_cannot_be_included(tmp_path: Path) -> None:
    folder = tmp_path / 'say "x"'
    folder.mkdir()
    (folder / "k.hip").touch()
    with pytest.raises(SpecError, match="cannot be included"):
        harness_request(make_case(folder / "k.hip", BUFFERS))


def test_one_harness_serves_all_variants_of_a_source(bench: Bench) -> None:
    args = (
        BufferArg("y"),
        ScalarValue("a", "float16", b"\x00\x3c", "1.0"),
        integer("n", 3),
        BufferArg("x"),
    )
    variants = {"first": ["k", "other"], "second": ["other"]}
    cases = make_cases(bench.source, BUFFERS, variants, args=args)
    request = harness_request(cases["first"])
    assert harness_request(cases["second"]) == request
    assert [kernel.expr for kernel in request.kernels] == ["k", "other"]
    want = [("buffer", "float32"), ("scalar", "float16"), ("integer", ""), ("buffer", "float16")]
    assert request.kernels[1].args == tuple(KernelArg(*pair) for pair in want)  # type: ignore[arg-type]
    for case in cases.values():
        for launch in case.launches:
            index = request.index_of(case.variant, launch.index, 32)
            assert request.kernels[index].expr == launch.kernel


def test_defines_are_evaluated_for_the_shape(bench: Bench) -> None:
    defines = {"TILE": "n * 2 + 1", "WIDTH": 4}
    request = harness_request(make_case(bench.source, BUFFERS, defines=defines))
    assert request.defines == (("TILE", "17"), ("WIDTH", "4"))


@needs_compiler
@pytest.mark.parametrize("times", [1, 9])
def test_a_cache_that_is_cleared_as_a_build_comes_in(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    left = [None] * times

    def cleared(*given: Any, **more: Any) -> None:
        if left:
            left.pop()
            cache.clear()
        storage.write(*given, **more)

    monkeypatch.setattr("tokitai_cli.build.entries.write", cleared)
    if times == 1:
        assert code_of(bench.build()) == 4
    else:
        with pytest.raises(BuildError, match="cleared again and again"):
            bench.build()


@needs_compiler
def test_a_good_entry_in_place_of_a_damaged_one_stays(bench: Bench) -> None:
    """Another process may have put it there since the damaged one was read."""
    built = bench.build()
    entries.throw_away(cache.location(), built.key)
    assert bench.build().cached
    built.path.write_bytes(b"")
    entries.throw_away(cache.location(), built.key)
    assert not built.path.exists()


@needs_compiler
def test_the_cache_is_listed_and_cleared(bench: Bench) -> None:
    built = bench.build()
    place = cache.location()
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
    foreign = place.folder.parent / "notes.txt"
    foreign.write_text("not ours")
    (entry,) = cache.entries()
    assert (entry.key, entry.device, entry.damage) == (built.key, "cpu", "")
    assert entry.source == str(bench.source)
    assert 0 < entry.nbytes < cache.size()
    built.path.write_bytes(b"")
    assert cache.entries()[0].damage == "the executable has a different size"
    busy = place.part("tmp") / f"build-{os.getpid()}-abc"
    busy.mkdir()
    assert cache.clear() > 0
    assert cache.entries() == []
    assert busy.exists()
    assert foreign.exists()
    assert not bench.build().cached


@pytest.mark.parametrize("how", ["file", "foreign", "link", "impossible"])
def test_a_cache_that_cannot_be_used_is_replaced_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    base = tmp_path / "cache"
    if how == "file":
        base.write_text("")
    elif how == "foreign":
        base.mkdir()
        mine = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
        base.chmod(0o777)
    elif how == "link":
        base.mkdir()
        (base / cache_store.FORMAT).symlink_to(tmp_path)
    else:
        base = Path("/proc/none/cache")
    monkeypatch.setenv("TOKITAI_CACHE", str(base))
    place = cache.location()
    try:
        assert "cannot be used" in place.note
        assert not place.folder.is_relative_to(tmp_path / "cache")
        assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
        assert cache.location() == place
    finally:
        process.remove_temporary_folder(place.folder)


def test_the_default_place_is_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOKITAI_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.location().folder == tmp_path / "tokitai" / cache_store.FORMAT


def test_a_cache_open_to_others_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c" / cache_store.FORMAT).mkdir(parents=True)
    (tmp_path / "c" / cache_store.FORMAT).chmod(0o755)
    monkeypatch.setenv("TOKITAI_CACHE", str(tmp_path / "c"))
    assert stat.S_IMODE(cache.location().folder.stat().st_mode) == 0o700


def test_depfiles_are_read_as_gcc_writes_them() -> None:
    text = "child: harness.cpp /a\\ b/c.hpp \\\n  d.hpp /x\\#y.hpp /m$$n.hpp d.hpp\n\nd.hpp:\n"
    found = [str(path) for path in read_depfile(text, Path("/build"))]
    assert found == [
        "/build/harness.cpp", "/a b/c.hpp", "/build/d.hpp", "/x#y.hpp", "/m$n.hpp",
    ]  # fmt: skip


@needs_compiler
def test_a_header_that_is_asked_for_and_comes_or_goes_is_another_build(bench: Bench) -> None:
    text = bench.source.read_text(encoding="utf-8")
    ask = '#if __has_include("fast.h")\nstatic int fast;\n#endif\n'
    bench.source.write_text(ask + text, encoding="utf-8")
    assert (bench.build().cached, bench.build().cached) == (False, True)
    header = bench.source.parent / "fast.h"
    header.write_text("", encoding="utf-8")
    assert (bench.build().cached, bench.build().cached) == (False, True)
    header.unlink()
    assert bench.build().cached


def test_shadows_are_the_earlier_places(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    header = tmp_path / "c" / "sub" / "h.hpp"
    command = ["c++", f"-I{tmp_path / 'b'}", "-isystem", str(tmp_path / "c")]
    assert flags.include_folders(command) == [tmp_path / "b", tmp_path / "c"]
    folders = [tmp_path / name for name in ("a", "b", "c")]
    want = [str(tmp_path / name / "sub" / "h.hpp") for name in ("a", "b")]
    assert shadows([header, Path("/usr/include/stdio.h")], folders) == want


def test_first_errors_of_compilers_and_linkers() -> None:
    log = "In file included from x:1:\nk.hip:3:5: error: one\nk.hip:4:1: fatal error: two\n"
    assert first_errors(log) == ("k.hip:3:5: error: one", "k.hip:4:1: fatal error: two")
    link = "/usr/bin/ld: /tmp/x.o: in function `main':\nx.cpp:(.text+0x5): undefined reference to `f'\n"
    assert first_errors(link) == ("x.cpp:(.text+0x5): undefined reference to `f'",)
    assert first_errors("\nsomething else\n") == ("something else",)
    assert first_errors("") == ()


@needs_compiler
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_tool_that_dies_while_compiling_leaves_a_good_cache(
    bench: Bench, how: signal.Signals
) -> None:
    """The compiler is a script that waits; its group and the build's folder go with the tool."""
    script = bench.folder / "slow"
    script.write_text(
        f"#!/bin/sh\necho $$ > {bench.folder}/pid.new\n"
        f"mv {bench.folder}/pid.new {bench.folder}/pid\nsleep 60\n"
    )
    script.chmod(0o755)
    code = f"""
    import signal, sys
    from pathlib import Path
    import msgspec
    from tests.build.test_build import Bench, harness_request, resources, build_stage
    signal.signal(signal.SIGINT, signal.default_int_handler)
    bench = Bench.__new__(Bench)
    bench.folder = Path({str(bench.folder)!r})
    bench.kernels = bench.folder / "kernels"
    bench.source = bench.folder / "k.hip"
    resources.kernels_dir = lambda: bench.kernels
    recipe = bench.recipe()
    command = ({str(script)!r}, *recipe.command[1:])
    build_stage.build(harness_request(bench.case()), msgspec.structs.replace(recipe, command=command))
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    tool = [sys.executable, "-c", textwrap.dedent(code)]
    pid = bench.folder / "pid"
    with subprocess.Popen(tool, env=environment, stderr=subprocess.DEVNULL) as started:
        try:
            assert eventually(lambda: pid.exists() or started.poll() is not None)
            assert pid.exists()
            started.send_signal(how)
            assert started.wait(timeout=20) != 0
        finally:
            started.kill()
    compiler = Path("/proc") / pid.read_text().strip()
    assert eventually(lambda: not compiler.exists())
    tmp = bench.folder / "cache" / cache_store.FORMAT / "tmp"
    assert eventually(lambda: list(tmp.iterdir()) == [])
    assert cache.entries() == []
    assert code_of(bench.build()) == 4


def eventually(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
