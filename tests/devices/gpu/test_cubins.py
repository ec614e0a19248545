"""Specs whose source is a cubin or PTX: read by their metadata, launched through the driver API.

The cuda device runs them where a GPU is. Without one the program that nvcc builds is linked to a
stand-in of the CUDA runtime and driver, `stand_in/cuda_runtime.cpp`, which records its calls.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from tests.devices.gfx.test_library import FORMULA, SPEC
from tests.runs import run, tokitai_here
from tokitai_cli import build, devices, spec
from tokitai_cli.core.errors import CodeError, SpecError, UntranslatedError
from tokitai_cli.core.model.device import DeviceOptions, Probe, Recipe
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices import cubins, registry, triton_metadata
from tokitai_cli.devices.cuda import CudaDevice
from tokitai_cli.spec import plan

SOURCE = """\
template <class T> __global__ void scale(T* out, const T* in, T by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i ^ 1] * by + T(1);
}
template __global__ void scale<float>(float*, const float*, float, int);
extern "C" __global__ void __launch_bounds__(96) other(char a, double b, short c, double* out) {
  *out = a + b + c;
}
extern "C" __global__ void bare() {}
"""
STAND_IN = Path(__file__).parent / "stand_in" / "cuda_runtime.cpp"
SYMBOL = "_Z5scaleIfEvPT_PKS0_S0_i"


def nvcc(*words: str) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc on PATH")
    subprocess.run(["nvcc", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """The sample's kernels for sm_90 in both forms."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "scale.cu").write_text(SOURCE)
    for form in ("cubin", "ptx"):
        nvcc("-arch=sm_90", f"-{form}", "-o", str(folder / form), str(folder / "scale.cu"))
    return {form: (folder / form).read_bytes() for form in ("cubin", "ptx")}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in's object file; programs that are linked to it lie beside it, built once."""
    made = tmp_path_factory.mktemp("runtime") / "cuda_runtime.o"
    nvcc("-std=c++17", "-c", "-o", str(made), str(STAND_IN))
    return made


class StandIn(CudaDevice):
    """The cuda device, whose programs are linked to the stand-in."""

    def __init__(self, runtime: Path, environment: Mapping[str, str]) -> None:
        self.runtime, self.environment = runtime, environment

    def probe(self, options: DeviceOptions) -> Probe:
        """As where a GPU is."""
        return msgspec.structs.replace(super().probe(options), available=True, missing="")

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """The device's, but for the runtime."""
        made = super().recipe(options, defines, flags).machine_code
        assert made is not None
        link = (*made.link[:3], "-cudart=none", str(self.runtime), *made.link[3:])
        return msgspec.structs.replace(made, machine_code=msgspec.structs.replace(made, link=link))

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """The device's, with what the stand-in takes."""
        return {**super().launch_environment(options), **self.environment}


def write(folder: Path, code: bytes, *changes: tuple[str, str], shift: int = 1) -> Path:
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "scale.bin").write_bytes(code)
    (folder / "formula.py").write_text(FORMULA.replace("SHIFT", str(shift)))
    (folder / "spec.yaml").write_text(text)
    return folder / "spec.yaml"


@pytest.mark.parametrize("form", ["cubin", "ptx"])
def test_kernels_and_parameters_are_read(
    form: str, compiled: Mapping[str, bytes], tmp_path: Path
) -> None:
    """As the compiler lays them out: at multiples of their sizes, one behind another."""
    (tmp_path / "code").write_bytes(compiled[form])
    module = cubins.read(tmp_path / "code")
    assert module.arch == "sm_90"
    assert module.portable == (form == "ptx")
    kernels = {one.name: one for one in module.kernels}
    assert sorted(kernels) == [SYMBOL, "bare", "other"]
    places = [(one.offset, one.size) for one in kernels["other"].args]
    assert places == [(0, 1), (8, 8), (16, 2), (24, 8)]
    assert kernels["other"].most_threads == 96
    assert kernels["bare"].args == ()
    assert kernels[SYMBOL].title == "scale<float>"
    assert (kernels[SYMBOL].registers is None) == (form == "ptx")


@pytest.mark.parametrize(
    ("arch", "portable", "runs"),
    [
        ("sm_80", False, {"sm_80", "sm_89"}),
        ("sm_90a", False, {"sm_90"}),
        ("sm_100f", True, {"sm_100", "sm_103"}),
        ("sm_80", True, {"sm_80", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"}),
    ],
)
def test_which_gpus_it_runs_on(arch: str, portable: bool, runs: set[str]) -> None:
    module = cubins.CudaModule(arch, (), b"", portable)
    gpus = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120")
    assert {one for one in gpus if module.serves(one)} == runs


def test_damaged_files_are_told(compiled: Mapping[str, bytes], tmp_path: Path) -> None:
    """Whatever a cut or a changed byte does, it ends in an error or a module, and no fault."""
    file, code = tmp_path / "code", compiled["cubin"]
    told = 0
    for at in range(0, len(code), 97):
        for data in (code[:at], code[:at] + bytes([code[at] ^ 0xFF]) + code[at + 1 :]):
            file.write_bytes(data)
            try:
                cubins.read(file)
            except CodeError as error:
                told += error.where is not None
    assert told > len(code) // 97
    file.write_bytes(b".version 8.0\n.target sm_90\n.entry k(.param .texref t) {}")
    with pytest.raises(
        CodeError, match=r"the parameter `\.param \.texref t` of k is not understood"
    ):
        cubins.read(file)


class Stand:
    """Runs specs of the sample on the stand-in."""

    def __init__(
        self, codes: Mapping[str, bytes], runtime: Path, out: Path, patch: pytest.MonkeyPatch
    ) -> None:
        self.codes, self.runtime, self.out, self.patch = codes, runtime, out, patch

    def run(
        self, form: str, *changes: tuple[str, str], shift: int = 1, fault: str = ""
    ) -> tuple[str, str, list[str]]:
        """Verdict, reason, and what the driver was called with."""
        folder = self.runtime.with_name(form)
        folder.mkdir(exist_ok=True)
        path = write(folder, self.codes[form], *changes, shift=shift)
        variables = {"TOKITAI_STAND_IN_LOG": str(self.out / "log"), "TOKITAI_STAND_IN_FAIL": fault}
        self.patch.setitem(registry._DEVICES, "cuda", StandIn(self.runtime, variables))
        (case,) = run(path, self.out, device="cuda", arch="sm_90").cases
        return str(case.verdict), case.reason, (self.out / "log").read_text().splitlines()


@pytest.fixture
def stand(
    compiled: Mapping[str, bytes], runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Stand:
    return Stand(compiled, runtime, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("form", "shift", "verdict"),
    [("cubin", 1, "verified"), ("cubin", 2, "refuted"), ("ptx", 1, "verified")],
)
def test_the_driver_is_given_what_the_metadata_says(
    form: str, shift: int, verdict: str, stand: Stand
) -> None:
    found, reason, calls = stand.run(form, shift=shift)
    assert found == verdict, reason
    assert calls[:2] == [f"load {form}", f"function {SYMBOL}"]
    launches = [one for one in calls if one.startswith("launch")]
    assert set(launches) == {"launch 2,1,1 64,1,1 shared 0 bytes 24"}


def test_more_shared_memory_than_usual_is_asked_for(stand: Stand) -> None:
    found, reason, calls = stand.run("cubin", ("block: [64]", "block: [64], shared: 65536"))
    assert found == "verified", reason
    assert "allow 8 65536" in calls
    assert "launch 2,1,1 64,1,1 shared 65536 bytes 24" in calls


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("cuModuleLoadData", "hipModuleLoadData"),
        ("cuModuleGetFunction", "hipModuleGetFunction"),
        ("cuLaunchKernel", "hipModuleLaunchKernel"),
    ],
)
def test_what_the_driver_refuses_is_told(call: str, named: str, stand: Stand) -> None:
    found, reason, _ = stand.run("cubin", fault=f"{call}:209")
    assert found == "crashed"
    assert named in reason


def test_what_does_not_fit_is_an_error_of_the_spec(
    compiled: Mapping[str, bytes], tmp_path: Path
) -> None:
    path = write(tmp_path, compiled["cubin"], ("[y, x, by, n]", "[y, by, x, n]"))
    with pytest.raises(SpecError, match="`by`, a float32; the parameter of `scale<float>`"):
        spec.load(path)
    write(tmp_path, compiled["cubin"], ("[y, x, by, n]", "[y, x, by]"))
    with pytest.raises(SpecError, match="the spec passes 3 arguments, `scale<float>` has 4"):
        spec.load(path)


def built(path: Path, device: str, arch: str) -> None:
    case = plan.plan(spec.load(path), plan.Selection()).cases[0]
    chosen = devices.get(device)
    options = DeviceOptions(arch=arch)
    if not chosen.probe(options).buildable:
        pytest.skip(f"no compiler for {device}")
    build.build(build.harness_request(case), chosen.recipe(options, {}, ()))


@pytest.mark.parametrize(
    ("device", "arch", "told"),
    [
        ("cuda", "sm_80", "machine code for sm_90 does not run on sm_80"),
        ("gfx", "", "a cubin, which holds no code for AMD processors"),
        ("cpu", "", "which the cpu device cannot execute"),
    ],
)
def test_another_device_and_another_gpu_are_told(
    device: str, arch: str, told: str, compiled: Mapping[str, bytes], tmp_path: Path
) -> None:
    with pytest.raises(UntranslatedError, match=told):
        built(write(tmp_path, compiled["cubin"]), device, arch)


def test_a_cubin_is_drafted(compiled: Mapping[str, bytes], tmp_path: Path) -> None:
    """With what Triton's files beside it tell, and by guesses without them."""
    folder = tmp_path / "cache"
    folder.mkdir()
    code = compiled["cubin"].replace(b"_Z5scaleIfEvPT_PKS0_S0_i", b"scale_of_24_letters_here")
    for one in (b"other", b"bare"):  # sections of other names are no kernels
        code = code.replace(b".nv.info." + one, b".nv.left." + one)
    (folder / "scale.cubin").write_bytes(code)
    ran = tokitai_here("new", folder, "--out", tmp_path / "guessed")
    assert ran.returncode == 0, ran.stderr
    text = (tmp_path / "guessed/spec.yaml").read_text()
    assert "arg0: {dtype: float32, shape: [arg2]}  # guess: its shape, its dtype" in text
    assert "--device cuda --arch sm_90" in ran.stdout
    (folder / "scale.json").write_text(
        '{"num_warps": 2, "shared": 512, "target": {"backend": "cuda", "arch": 90, "warp_size": 32}}'
    )
    (folder / "scale.ttir").write_text(
        "tt.func public @scale_of_24_letters_here(%out: !tt.ptr<f32>, %in: !tt.ptr<f32>, %by: f32, "
        "%n: i32) attributes {noinline = false} {\n  %0 = tt.load %in : !tt.ptr<f32>\n"
        "  tt.store %out, %0 : !tt.ptr<f32>\n}\n"
    )
    kernel = triton_metadata.read(folder)
    assert (kernel.threads, kernel.shared, kernel.arch) == (64, 512, "sm_90")
    assert [(one.name, one.dtype) for one in kernel.arguments][2:] == [
        ("by", "float32"),
        ("n", "int32"),
    ]
    refused = {'"num_ctas": 2': "clusters of 2 b", '"launch_cooperative_grid": true': "cooperative"}
    for said, what in refused.items():
        (folder / "scale.json").write_text(
            f'{{{said}, "target": {{"backend": "cuda", "arch": 90}}}}'
        )
        with pytest.raises(CodeError, match=what):
            triton_metadata.read(folder)


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["cubin", "ptx"])
@pytest.mark.parametrize("shift", [1, 2])
def test_a_gpu_runs_it(form: str, shift: int, tmp_path: Path) -> None:
    probe = devices.get("cuda").probe(DeviceOptions())
    if not probe.available:
        pytest.skip(f"no NVIDIA GPU: {probe.missing}")
    (tmp_path / "scale.cu").write_text(SOURCE)
    made = tmp_path / "made"
    nvcc(f"-arch={probe.arch}", f"-{form}", "-o", str(made), str(tmp_path / "scale.cu"))
    path = write(tmp_path, made.read_bytes(), shift=shift)
    (case,) = run(path, tmp_path / "out", device="cuda").cases
    assert case.verdict is (Verdict.VERIFIED if shift == 1 else Verdict.REFUTED), case.reason
