"""What is found of GPUs and their compilers, from programs and files that stand for the real ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import bare_path, program
from tokitai_cli import devices
from tokitai_cli.core.errors import BuildError, UsageError
from tokitai_cli.core.model.device import DeviceOptions, Probe
from tokitai_cli.devices import amd, cuda, nvidia, programs, rocm
from tokitai_cli.devices.amd import Agent

TOLD = Path(__file__).parent / "told"
OPTIONS = DeviceOptions()
BITCODE = "lib/llvm/lib/clang/19/lib/amdgcn/bitcode/ocml.bc"
VARIABLES = (
    *("CXX", "HIPCC", "ROCM_PATH", "ROCM_HOME", "HIP_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES"),
    *(amd.OVERRIDE, *amd.VISIBLE),
)


def told(name: str) -> str:
    return (TOLD / name).read_text(encoding="utf-8")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing: no driver, no program in PATH but cat and sh; returns that folder."""
    folder = bare_path(tmp_path, monkeypatch, VARIABLES)
    none = tmp_path / "none"
    for module, name in ((amd, "DRIVER"), (amd, "NODES"), (nvidia, "DRIVER"), (nvidia, "NODE")):
        monkeypatch.setattr(module, name, none)
    # Installations of the machine that runs the tests are none of this one's.
    look = programs.first_program

    def here(candidates: list[tuple[str, str]]) -> tuple[Path, str] | None:
        return look([c for c in candidates if "/" not in c[0] or c[0].startswith(str(tmp_path))])

    for found_by in (rocm, cuda, amd, nvidia):
        monkeypatch.setattr(found_by, "first_program", here)
    return folder


def with_amd_gpu(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amd, "DRIVER", machine)
    monkeypatch.setattr(amd, "NODES", machine / "nodes")
    program(machine, "rocm_agent_enumerator", told("rocm5-rocm_agent_enumerator.txt"))
    program(machine, "hipcc")


def with_nvidia_gpu(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "DRIVER", machine)
    program(machine, "nvidia-smi", told("nvidia-smi.csv"))
    program(machine, "nvcc")
    program(machine, "g++")


def probe(name: str, **options: object) -> Probe:
    return devices.get(name).probe(DeviceOptions(**options))  # type: ignore[arg-type]


def facts(found: Probe, name: str) -> list[tuple[str, str]]:
    return [(fact.value, fact.source) for fact in found.facts if fact.name == name]


# --- AMD -------------------------------------------------------------------------------------------


def test_agents_of_every_release_and_program() -> None:
    assert amd.parse_enumerator(told("rocm5-rocm_agent_enumerator.txt")) == (
        Agent("gfx90a"),
        Agent("gfx90a"),
        Agent("gfx1101"),
    )
    assert amd.parse_rocminfo(told("rocm5-rocminfo.txt")) == (
        Agent("gfx90a", "AMD Instinct MI250X"),
        Agent("gfx1030", "AMD Radeon RX 6900 XT"),
    )
    assert amd.parse_rocminfo(told("rocm6-rocminfo.txt")) == (
        Agent("gfx1101", "AMD Radeon RX 7800 XT"),
        Agent("gfx1036", "AMD Radeon Graphics"),
    )
    # The generic ISA below an agent is no agent.
    assert amd.parse_rocminfo(told("rocm7-rocminfo.txt")) == (
        Agent("gfx942", "AMD Instinct MI300X"),
    )
    assert [agent.arch for agent in amd.parse_amd_smi(told("rocm6-amd-smi.json"))] == ["gfx90a"] * 2
    assert amd.parse_amd_smi(told("rocm7-amd-smi.json")) == (
        Agent("gfx942", "AMD Instinct MI300X"),
    )


@pytest.mark.parametrize(
    "text", ["", "Traceback (most recent call last):\n  [Errno 2]\n", "[{]", "{"]
)
def test_a_program_that_fails_tells_of_no_gpu(text: str) -> None:
    assert amd.parse_enumerator(text) == ()
    assert amd.parse_rocminfo(text) == ()
    assert amd.parse_amd_smi(text) == ()
    assert nvidia.parse_smi(text) == ()


def test_each_program_is_asked_until_one_tells(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(amd, "DRIVER", machine)
    nodes = machine / "nodes"
    for node, version in (("0", 0), ("1", 110001), ("2", 90010), ("10", 90402)):
        text = f"simd_count 64\ngfx_target_version {version}\nvendor_id 4098\n"
        (nodes / node).mkdir(parents=True)
        (nodes / node / "properties").write_text(text)
    monkeypatch.setattr(amd, "NODES", nodes)
    archs = [agent.arch for agent in amd.agents()[0]]
    assert (archs, amd.agents()[1]) == (["gfx1101", "gfx90a", "gfx942"], str(nodes))
    program(machine, "amd-smi", told("rocm7-amd-smi.json"))
    assert amd.agents()[1] == "amd-smi"
    program(machine, "rocminfo", told("rocm6-rocminfo.txt"))
    assert amd.agents()[1] == "rocminfo"
    program(machine, "rocm_agent_enumerator", "gfx000")  # sees the CPU alone
    assert amd.agents()[1] == "rocminfo"
    program(machine, "rocm_agent_enumerator", told("rocm5-rocm_agent_enumerator.txt"))
    assert amd.agents()[1] == "rocm_agent_enumerator"


def test_rocm_without_anything(machine: Path) -> None:
    found = probe("rocm")
    assert (found.available, found.buildable, found.arch) == (False, False, "gfx1101")
    assert found.missing.startswith("ROCm/HIP is unavailable; ")
    assert found.missing.endswith("remains inadmissible")
    for word in ("/dev/kfd", "no AMD GPU", "no hipcc or amdclang++"):
        assert word in found.missing
    assert "--build-only" not in found.hint
    with pytest.raises(BuildError, match="no hipcc"):
        devices.get("rocm").recipe(OPTIONS, {}, ())


def test_rocm_with_a_compiler_alone_can_build(machine: Path) -> None:
    program(machine, "hipcc")
    found = probe("rocm")
    assert (found.available, found.buildable) == (False, True)
    assert "--build-only compiles here" in found.hint
    assert facts(found, "arch") == [("gfx1101", "default")]


def test_rocm_takes_the_architecture_of_the_gpu_that_is_asked_for(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_amd_gpu(machine, monkeypatch)
    found = probe("rocm")
    assert (found.available, found.arch, found.missing) == (True, "gfx90a", "")
    assert [value for value, _ in facts(found, "agent")] == ["gfx90a", "gfx90a", "gfx1101"]
    assert facts(probe("rocm", gpu=2), "arch") == [("gfx1101", "rocm_agent_enumerator")]
    assert facts(probe("rocm", arch="gfx942"), "arch") == [("gfx942", "--arch")]
    assert probe("rocm", arch="native", gpu=2).arch == "gfx1101"
    other = probe("rocm", gpu=3)
    assert not other.available
    assert "no GPU 3: there are 3" in other.missing


def test_rocm_obeys_and_records_its_variables(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_amd_gpu(machine, monkeypatch)
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "2,0")
    assert [value for value, _ in facts(probe("rocm"), "agent")] == ["gfx1101", "gfx90a"]
    assert probe("rocm", gpu=1).arch == "gfx90a"
    monkeypatch.setenv(amd.OVERRIDE, "11.0.0")
    found = probe("rocm")
    assert facts(found, "arch") == [("gfx1100", amd.OVERRIDE)]
    assert facts(found, f"environment.{amd.OVERRIDE}") == [("11.0.0", "environment")]
    child = devices.get("rocm").launch_environment(OPTIONS)
    assert (child[amd.OVERRIDE], child["HIP_VISIBLE_DEVICES"]) == ("11.0.0", "2,0")


@pytest.mark.parametrize(
    ("value", "arch"),
    [("10.3.0", "gfx1030"), ("9.0.10", "gfx90a"), ("11.0.1", "gfx1101"), ("", ""), ("gfx1030", "")],
)
def test_the_override_is_a_version(value: str, arch: str) -> None:
    assert amd.overridden(value) == arch


@pytest.mark.parametrize(
    ("variables", "left"),
    [
        ({}, "abc"),
        ({"HIP_VISIBLE_DEVICES": "1"}, "b"),
        ({"ROCR_VISIBLE_DEVICES": "2,1", "HIP_VISIBLE_DEVICES": "1"}, "b"),
        ({"HIP_VISIBLE_DEVICES": "1,7,0"}, "b"),
        ({"HIP_VISIBLE_DEVICES": "-1"}, ""),
        ({"ROCR_VISIBLE_DEVICES": "GPU-0123"}, "abc"),
    ],
)
def test_visible_amd_gpus(variables: dict[str, str], left: str) -> None:
    found = amd.shown(tuple(Agent(f"gfx{one}") for one in "abc"), variables)
    assert "".join(agent.arch[-1] for agent in found) == left


@pytest.mark.parametrize("arch", ["sm_90", "11.0.1", "gfx", "gfx1101;rm"])
def test_what_is_no_amd_architecture(machine: Path, arch: str) -> None:
    program(machine, "hipcc")
    assert f"--arch {arch}: not an architecture of AMD GPUs" in probe("rocm", arch=arch).missing
    with pytest.raises(UsageError, match="not an architecture"):
        devices.get("rocm").recipe(DeviceOptions(arch=arch), {}, ())


@pytest.mark.parametrize(
    "arch", ["gfx90a:sramecc+:xnack-", "gfx11-generic", "gfx9-4-generic:xnack+"]
)
def test_targets_with_features(machine: Path, arch: str) -> None:
    program(machine, "hipcc")
    recipe = devices.get("rocm").recipe(DeviceOptions(arch=arch), {}, ())
    assert f"--offload-arch={arch}" in recipe.command


def test_the_rocm_recipe(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hipcc = program(machine, "hipcc")
    monkeypatch.setenv("HIPCC_COMPILE_FLAGS_APPEND", "-O0")
    recipe = devices.get("rocm").recipe(DeviceOptions(arch="gfx1030"), {"TILE": "4"}, ("-O1",))
    words = recipe.command
    assert words[0] == str(hipcc)
    assert {"-O2", "--offload-arch=gfx1030", "-std=c++17", '-DTOKITAI_BUILT_FOR="gfx1030"'} <= {
        *words
    }
    assert (
        words.index("-O2") < words.index("-DTILE=4") < words.index("-O1") < words.index("{source}")
    )
    # Beside a CUDA toolkit hipcc would take nvcc.
    assert recipe.environment["HIP_PLATFORM"] == "amd"
    assert "HIPCC_COMPILE_FLAGS_APPEND" not in recipe.environment
    assert devices.get("rocm").launch_command(Path("/a"), DeviceOptions(gpu=2)) == ("/a", "--gpu=2")
    with pytest.raises(BuildError, match=r"--arch native: there is no GPU.*--arch gfx1101"):
        devices.get("rocm").recipe(DeviceOptions(arch="native"), {}, ())


@pytest.mark.parametrize(
    ("layout", "wrapped"),
    [
        # ROCm 5: hipcc is a Perl script beside hipcc.pl, clang in llvm/.
        (("bin/hipcc.pl", "llvm/bin/clang++", "amdgcn/bitcode/ocml.bc"), 3),
        # ROCm 6 and 7: hipcc is a program, clang in lib/llvm/, the bitcode in clang's own folder.
        (("bin/hipcc.bin", "lib/llvm/bin/clang++", BITCODE), 3),
    ],
)  # fmt: skip
def test_layouts_of_rocm(
    machine: Path, monkeypatch: pytest.MonkeyPatch, layout: tuple[str, ...], wrapped: int
) -> None:
    root = machine.parent / "rocm-x"
    hipcc = program(root / "bin", "hipcc")
    for name in layout:
        program((root / name).parent, Path(name).name)
    monkeypatch.setenv("ROCM_PATH", str(root))
    found = probe("rocm")
    assert facts(found, "compiler") == [(str(hipcc), "ROCM_PATH")]
    recipe = devices.get("rocm").recipe(OPTIONS, {}, ())
    assert {str(path.relative_to(root)) for path in recipe.wraps} == set(layout)
    assert len(recipe.wraps) == wrapped
    assert recipe.environment["ROCM_PATH"] == str(root)


def test_the_probe_says_for_which_architectures_libraries_are_there(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine.parent / "rocm-x"
    program(root / "bin", "hipcc")
    folder = root / "amdgcn" / "bitcode"
    for name in ("ocml", *(f"oclc_isa_version_{arch}" for arch in ("1030", "90a", "900"))):
        program(folder, f"{name}.bc")
    monkeypatch.setenv("ROCM_PATH", str(root))
    found = probe("rocm", arch="gfx1101")
    assert facts(found, "builds for") == [("gfx900, gfx90a, gfx1030", str(folder))]
    assert f"no device library for gfx1101 in {folder}" in found.missing
    assert found.hint.endswith("compiles here for gfx900 or gfx90a or gfx1030, with --arch")
    known = probe("rocm", arch="gfx90a:xnack-")
    assert "device library" not in known.missing
    assert known.hint.endswith("--build-only compiles here")


def test_amdclang_serves_where_there_is_no_hipcc(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine.parent / "rocm-7.0.0"
    clang = program(root / "lib" / "llvm" / "bin", "amdclang++")
    (root / "bin").mkdir()
    (root / "bin" / "amdclang++").symlink_to(clang)
    (root / "lib" / "libamdhip64.so").write_text("")
    monkeypatch.setenv("ROCM_PATH", str(root))
    recipe = devices.get("rocm").recipe(OPTIONS, {}, ())
    words = recipe.link
    assert words[0] == recipe.command[0] == str(root / "bin" / "amdclang++")
    assert f"--rocm-path={root}" in recipe.command
    assert {"--hip-link", f"--rocm-path={root}", "-lamdhip64", f"-L{root / 'lib'}"} <= {*words}
    assert words.index("{object}") < words.index("-lamdhip64")
    program(root / "bin", "hipcc")
    assert "--hip-link" not in devices.get("rocm").recipe(OPTIONS, {}, ()).link


def test_a_hipcc_that_was_asked_for_is_never_replaced(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(machine, "hipcc")
    monkeypatch.setenv("HIPCC", str(machine / "no-such-hipcc"))
    assert not probe("rocm").buildable
    mine = program(machine.parent / "mine", "hipcc")
    monkeypatch.setenv("HIPCC", str(mine))
    assert facts(probe("rocm"), "compiler") == [(str(mine), "HIPCC")]


# --- NVIDIA ----------------------------------------------------------------------------------------


def test_cuda_without_anything(machine: Path) -> None:
    found = probe("cuda")
    assert (found.available, found.buildable, found.arch) == (False, False, "sm_90")
    assert found.missing.startswith("CUDA is unavailable; no NVIDIA GPU")
    for word in ("no nvcc", "no C++ compiler for nvcc"):
        assert word in found.missing
    with pytest.raises(BuildError, match="no nvcc"):
        devices.get("cuda").recipe(OPTIONS, {}, ())


def test_cuda_takes_the_capability_of_the_gpu_that_is_asked_for(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_nvidia_gpu(machine, monkeypatch)
    found = probe("cuda")
    assert (found.available, found.arch, found.missing) == (True, "sm_90", "")
    assert facts(found, "gpu")[0] == ("0: NVIDIA H100 80GB HBM3, sm_90", "nvidia-smi")
    assert facts(found, "driver") == [("580.82.07", "nvidia-smi")]
    assert facts(found, "warp-size")[0][0] == "32"
    assert [probe("cuda", gpu=gpu).arch for gpu in (1, 2)] == ["sm_80", "sm_120"]
    assert "Blackwell, Server Edition" in facts(found, "gpu")[2][0]
    assert "no GPU 3: there are 3" in probe("cuda", gpu=3).missing
    assert [probe("cuda", arch=arch).arch for arch in ("90a", "sm_86", "native")] == [
        *("sm_90a", "sm_86", "sm_90"),
    ]


@pytest.mark.parametrize(
    ("visible", "left"),
    [
        (None, "012"),
        ("1", "1"),
        ("2,0", "20"),
        ("GPU-bbbb", "1"),
        ("0,9,1", "0"),
        ("", ""),
        ("0,0", "0"),
    ],
)
def test_visible_nvidia_gpus(visible: str | None, left: str) -> None:
    found = nvidia.shown(nvidia.parse_smi(told("nvidia-smi.csv")), visible)
    assert "".join(str(gpu.index) for gpu in found) == left


def test_the_driver_is_asked_where_nvidia_smi_says_nothing(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvidia, "DRIVER", machine)
    asked = program(machine.parent / "python", "python", "0, NVIDIA L4, 8.9, , ")
    monkeypatch.setattr(sys, "executable", str(asked))
    program(machine, "nvidia-smi", "NVIDIA-SMI has failed because it couldn't communicate")
    gpus, how = nvidia.gpus()
    assert ([gpu.arch for gpu in gpus], how) == (["sm_89"], "libcuda.so.1")


def test_the_cuda_recipe(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_nvidia_gpu(machine, monkeypatch)
    flags = ("-ffast-math", "-DX=1", "-O1", "-fno-strict-aliasing", "-ffp-contract=off")
    recipe = devices.get("cuda").recipe(OPTIONS, {"TILE": "4"}, flags)
    words = recipe.command
    at = words.index("-gencode")
    # Machine code for the one GPU and no PTX: what runs is what was built.
    assert words[at + 1] == "arch=compute_90,code=sm_90"
    assert words[words.index("-ccbin") + 1] == str(machine / "g++")
    assert {"-objtemp", "-Xptxas=-v", "-DTILE=4", '-DTOKITAI_BUILT_FOR="sm_90"'} <= {*words}
    end = words.index("-MD")
    assert words[end - 5 : end] == (
        *("-use_fast_math", "-DX=1", "-O1", "-Xcompiler=-fno-strict-aliasing", "-fmad=false"),
    )
    environment = devices.get("cuda").launch_environment(OPTIONS)
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    with pytest.raises(UsageError, match="gfx1101: not an architecture of NVIDIA"):
        devices.get("cuda").recipe(DeviceOptions(arch="gfx1101"), {}, ())


def test_an_architecture_of_one_vendor_does_not_break_the_probe_of_the_other(machine: Path) -> None:
    program(machine, "c++")
    found = devices.choose("all", DeviceOptions(arch="gfx1101"))
    assert [device.name for device, _ in found] == list(devices.names())
    missing = {device.name: one.missing for device, one in found}
    assert "not an architecture of NVIDIA GPUs" in missing["cuda"]
