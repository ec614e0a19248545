"""Probes, recipes and the choice of a device, with programs and files that stand for the real ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support import bare_path, program
from tokitai_cli import devices
from tokitai_cli.core import resources
from tokitai_cli.core.errors import BuildError, InadmissibleError, UsageError
from tokitai_cli.core.model.device import TRAITS, DeviceClass, DeviceOptions, Probe
from tokitai_cli.devices import amd, cpu, cuda, nvidia, programs
from tokitai_cli.devices.amdgpu import gfx_compiler

OPTIONS = DeviceOptions()


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing but cat and sh, and no variables that name compilers; returns its folder."""
    folder = bare_path(tmp_path, monkeypatch, ("CXX", "CLANG", "HIPCC", "ROCM_PATH", "CUDA_HOME"))
    monkeypatch.setattr(cpu, "pip_zig", lambda: None)
    monkeypatch.setattr(gfx_compiler, "pip_zig", lambda: None)
    return folder


def probe(name: str, options: DeviceOptions = OPTIONS) -> Probe:
    return devices.get(name).probe(options)


def facts(found: Probe) -> dict[str, tuple[str, str]]:
    return {fact.name: (fact.value, fact.source) for fact in found.facts}


def test_every_list_of_devices_is_the_tables() -> None:
    assert devices.names() == tuple(TRAITS)
    for name, traits in TRAITS.items():
        assert devices.get(name).name == name
        assert devices.get(name).traits is traits
        folder = resources.kernels_dir() / traits.headers
        assert folder.is_dir()
        assert traits.sanitizer or not devices.get(name).sanitizers()
    folders = {path.name for path in resources.kernels_dir().iterdir() if path.is_dir()}
    assert folders == {
        "harness",
        "native",
        *(one.headers for one in TRAITS.values() if one.headers),
    }
    environment = [*devices.get("rocm").traits.obeyed, *devices.get("cuda").traits.obeyed]
    assert {amd.OVERRIDE, *amd.VISIBLE, nvidia.VISIBLE} <= set(environment)


def test_names_and_classes() -> None:
    classes = {name: devices.get(name).traits.device_class for name in devices.names()}
    assert classes == {
        "rocm": DeviceClass.AMD_GPU,
        "cuda": DeviceClass.NVIDIA_GPU,
        "gfx": DeviceClass.GFX_ISA_ON_CPU,
        "cpu": DeviceClass.HOST_SIMT,
    }
    with pytest.raises(UsageError, match=r"unknown device: 'cpuu'.*did you mean cpu"):
        devices.get("cpuu")


@pytest.mark.parametrize("name", ["rocm", "cuda", "gfx", "cpu"])
def test_all_but_gfx_disclaim_machine_code(name: str) -> None:
    non_claims = devices.get(name).non_claims
    assert ("not machine-code verification" in non_claims) == (name != "gfx")
    assert ("not GPU evidence" in non_claims) == (name == "cpu")
    assert any("shared memory" in text for text in non_claims) == (name in ("cuda", "rocm"))
    assert ("not AMD device evidence" in non_claims) == (name == "cuda")
    assert ("not executed on a GPU" in non_claims) == (name == "gfx")


def test_the_compiler_of_cxx_comes_first(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(empty, "g++")
    mine = program(empty.parent / "mine", "my c++")
    monkeypatch.setenv("CXX", f"'{mine}' -m64")
    recipe = devices.get("cpu").recipe(OPTIONS, {}, ())
    assert recipe.compiler == mine
    assert recipe.command[:2] == (str(mine), "-m64")
    assert recipe.version_command == (str(mine), "-m64", "--version")
    assert facts(probe("cpu"))["compiler"][1] == "CXX"


@pytest.mark.parametrize("words", ["-fplugin=a.so", "-specs=a", "@a", "-DTOKITAI=1"])
def test_words_of_cxx_are_checked_as_flags_are(
    empty: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    program(empty, "g++")
    monkeypatch.setenv("CXX", f"g++ -m64 {words}")
    with pytest.raises(UsageError, match=r"CXX: .*flag"):
        devices.get("cpu").recipe(OPTIONS, {}, ())


@pytest.mark.parametrize(
    ("there", "taken"), [(("g++", "c++"), "g++"), (("clang++", "g++"), "clang++"), (("c++",),) * 2]
)
def test_the_first_compiler_of_path_is_taken(
    empty: Path, there: tuple[str, ...], taken: str | tuple[str, ...]
) -> None:
    for name in there:
        program(empty, name)
    want = taken if isinstance(taken, str) else taken[0]
    assert devices.get("cpu").recipe(OPTIONS, {}, ()).compiler == empty / want


def test_a_named_compiler_is_never_replaced(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(empty, "g++")
    monkeypatch.setenv("CXX", "no-such-compiler")
    found = probe("cpu")
    assert (found.available, found.buildable) == (True, False)
    assert "CXX names 'no-such-compiler'" in found.missing
    with pytest.raises(BuildError, match="CXX names"):
        devices.get("cpu").recipe(OPTIONS, {}, ())


def test_zig_serves_where_there_is_no_compiler(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = probe("cpu")
    assert (found.available, found.buildable) == (True, False)
    assert "no C++ compiler" in found.missing
    with pytest.raises(BuildError, match=r"no C\+\+ compiler"):
        devices.get("cpu").recipe(OPTIONS, {}, ())
    assert "ziglang" in found.hint
    zig = program(empty.parent / "ziglang", "zig")
    monkeypatch.setattr(cpu, "pip_zig", lambda: zig)
    recipe = devices.get("cpu").recipe(OPTIONS, {}, ())
    assert recipe.command[:2] == (str(zig), "c++")
    assert "two minutes" in recipe.notice
    assert probe("cpu").buildable


def test_pips_zig_is_found_as_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zig = program(tmp_path / "ziglang", "zig")
    (tmp_path / "ziglang" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "ziglang", raising=False)
    assert programs.pip_zig() == zig


def test_the_cpu_recipe(empty: Path) -> None:
    program(empty, "c++")
    options = DeviceOptions(warp_size=64, threads=3)
    recipe = devices.get("cpu").recipe(options, {"TILE": "4", "A": "1"}, ("-ffast-math",))
    words = recipe.command
    assert words.index("-DA=1") < words.index("-DTILE=4") < words.index("-ffast-math")
    assert {"-DTOKITAI_WARP_SIZE=64", "-ffp-contract=off", "-std=c++17", "-pthread"} <= set(words)
    assert {"{source}", "{output}", "{depfile}"} <= set(words)
    assert recipe.resolved_features.startswith(os.uname().machine)
    assert recipe.environment["LC_ALL"] == "C.UTF-8"
    command = devices.get("cpu").launch_command(Path("/a/child"), options)
    assert command == ("/a/child", "--threads=3")
    assert "-DTOKITAI_WARP_SIZE=32" in devices.get("cpu").recipe(OPTIONS, {}, ()).command


def test_options_out_of_range(empty: Path) -> None:
    program(empty, "c++")
    device = devices.get("cpu")
    with pytest.raises(UsageError, match="warp size is 32 or 64, not 16"):
        device.recipe(DeviceOptions(warp_size=16), {}, ())
    with pytest.raises(UsageError, match="at least 1, not -1"):
        device.launch_command(Path("/a"), DeviceOptions(threads=-1))


@pytest.mark.parametrize(
    "name", ["CPATH", "CPLUS_INCLUDE_PATH", "NVCC_APPEND_FLAGS", "HIPCC_COMPILE_FLAGS_APPEND"]
)
def test_variables_that_change_builds_are_dropped_and_told(
    empty: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    program(empty, "c++")
    monkeypatch.setenv(name, "/somewhere")
    assert name not in devices.get("cpu").recipe(OPTIONS, {}, ()).environment
    assert name not in devices.get("cpu").launch_environment(OPTIONS)
    for device in devices.names():
        assert facts(probe(device))[f"environment.{name}"][1] == "environment"


@pytest.mark.parametrize("variable", ["HIPCC", "ROCM_PATH"])
def test_hipcc_by_variable(empty: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    program(empty, "hipcc")
    mine = program(empty.parent / "rocm" / "bin", "hipcc")
    value = mine if variable == "HIPCC" else mine.parent.parent
    monkeypatch.setenv(variable, str(value))
    assert facts(probe("rocm"))["compiler"] == (str(mine), variable)


def test_gfx_without_compilers_is_said_to_be_missing(empty: Path) -> None:
    found = probe("gfx")
    assert (found.available, found.buildable, found.arch) == (False, False, "gfx1101")
    assert "no compiler for AMD GPUs" in found.missing
    assert "tokitai[gfx]" in found.hint
    with pytest.raises(InadmissibleError, match="no compiler for AMD GPUs"):
        devices.get("gfx").recipe(OPTIONS, {}, ())


def test_auto_takes_the_first_that_is_there_and_says_so(empty: Path) -> None:
    program(empty, "c++")
    ((device, found),) = devices.choose("auto", OPTIONS)
    assert device.name == "cpu"
    text, source = facts(found)[devices.CHOSEN_BY]
    assert text == "auto took cpu; not available: rocm, cuda"
    assert source == "--device auto"


def test_auto_without_a_compiler_is_the_cpu_that_cannot_build(empty: Path) -> None:
    ((device, found),) = devices.choose("auto", OPTIONS)
    assert (device.name, found.available, found.buildable) == ("cpu", True, False)


def test_auto_prefers_a_gpu(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Probe("cuda", DeviceClass.NVIDIA_GPU, available=True, buildable=True, arch="sm_90")
    monkeypatch.setattr(cuda.CudaDevice, "probe", lambda self, options: there)
    ((device, found),) = devices.choose("auto", OPTIONS)
    assert device.name == "cuda"
    assert facts(found)[devices.CHOSEN_BY][0] == "auto took cuda; not available: rocm"


def test_a_name_is_that_device_even_if_it_is_not_there(empty: Path) -> None:
    ((device, found),) = devices.choose("rocm", OPTIONS)
    assert device.name == "rocm"
    assert not found.available
    assert devices.CHOSEN_BY not in facts(found)
    with pytest.raises(UsageError, match="unknown device"):
        devices.choose("tpu", OPTIONS)


def test_all_leaves_none_out(empty: Path) -> None:
    program(empty, "c++")
    found = {device.name: found.available for device, found in devices.choose("all", OPTIONS)}
    assert found == {"rocm": False, "cuda": False, "gfx": False, "cpu": True}


@pytest.mark.parametrize(
    ("arch", "limit"), [("", 65536), ("gfx942:xnack-", 65536), ("gfx950:sramecc+", 163840)]
)
def test_shared_memory_on_the_cpu_device_is_that_of_the_architecture(arch: str, limit: int) -> None:
    recipe = devices.get("cpu").recipe(DeviceOptions(arch=arch), {}, ())
    assert f"-DTOKITAI_SHARED_LIMIT={limit}" in recipe.command
