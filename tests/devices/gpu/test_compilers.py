"""The real nvcc and hipcc, where they are there: all compiles, and without a GPU the child says so."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.commands import test_user_kernels as users
from tests.commands import test_wrong_kernels as wrongs
from tests.devices.gpu import faults
from tests.runs import KERNELS, run, tokitai
from tests.spec_example import write_example
from tests.support import slow
from tokitai_cli import build, devices, spec
from tokitai_cli.core.errors import InadmissibleError
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.evidence import BuildRecord
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run import child
from tokitai_cli.spec import plan

OPS = tuple(name for name, _ in spec.builtin())
TARGETS = (
    pytest.param(("cuda", "sm_90"), id="sm_90"),
    pytest.param(("rocm", "gfx1030"), id="gfx1030"),
    pytest.param(("rocm", "gfx90a"), id="gfx90a", marks=pytest.mark.slow),
)
MISSING = {"cuda": "no nvcc with a host compiler", "rocm": "no hipcc (Debian's package: hipcc)"}


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A device and an architecture; skipped where its compiler is not there."""
    device, arch = request.param
    if not devices.get(device).probe(DeviceOptions(arch=arch)).buildable:
        pytest.skip(MISSING[device])
    return device, arch


def built(spec_path: str | Path, target: tuple[str, str], out: Path, **options: Any) -> BuildRecord:
    """Record of the one build of a spec for the target."""
    device, arch = target
    evidence = run(spec_path, out, device=device, arch=arch, build_only=True, **options)
    assert evidence.verdict is Verdict.BUILT, evidence.reason
    (record,) = evidence.builds.values()
    assert (record.device, record.arch) == target
    return record


@pytest.mark.parametrize("op", OPS)
def test_shipped_kernels_compile_and_tell_what_they_need(
    op: str, target: tuple[str, str], tmp_path: Path
) -> None:
    device, arch = target
    record = built(op, target, tmp_path)
    found = {fact.name: fact.value for fact in record.code_object}
    registers = ": registers" if device == "cuda" else ": vector registers"
    kernels = {name.removesuffix(registers) for name in found if name.endswith(registers)}
    launched = {
        launch.kernel.partition("<")[0]
        for variant in spec.load(spec.find(op)).spec.variants.values()
        for launch in variant.launches
    }
    # Templates stand there by their mangled names.
    assert all(any(name in kernel for kernel in kernels) for name in launched)
    for kernel in kernels:
        assert int(found[f"{kernel}{registers}"]) > 0
        assert int(found[f"{kernel}: shared bytes"]) % 4 == 0
    if device == "cuda":
        assert {found[f"{kernel}: machine code for"] for kernel in kernels} == {arch}
        assert {found[f"{kernel}: spill stores in bytes"] for kernel in kernels} == {"0"}
        assert any(path.endswith("ptxas") for path in record.compiler.wraps)  # type: ignore[union-attr]
        assert any("kernels/cuda/hip/hip_runtime.h" in path for path in record.headers)
    else:
        assert found["code object for"].startswith(f"amdgcn-amd-amdhsa--{arch}")
        wave = {"gfx1030": "32", "gfx90a": "64"}[arch]
        assert {found[f"{kernel}: wave size"] for kernel in kernels} == {wave}
        assert {found[f"{kernel}: scratch bytes per thread"] for kernel in kernels} == {"0"}
        assert any("clang" in path for path in record.compiler.wraps)  # type: ignore[union-attr]
    if op == "layernorm":
        assert found["layernorm_bw_grad_kernel: shared bytes"] == "4096"


def test_structs_behind_pointers_compile(target: tuple[str, str], tmp_path: Path) -> None:
    path = KERNELS / "own" / "arguments" / "spec.yaml"
    record = built(path, target, tmp_path, variant=["pointed", "several"])
    assert any("looked_at" in fact.name for fact in record.code_object)


def _has_bfloat16(record: BuildRecord) -> bool:
    found = (Path(path) for path in record.headers if path.endswith("hip/hip_runtime.h"))
    return any((path.parent / "hip_bf16.h").exists() for path in found)


@pytest.mark.slow
def test_every_dtype_argument_and_memory_of_user_kernels_compiles(
    target: tuple[str, str], tmp_path: Path
) -> None:
    record = built(faults.write_spec(tmp_path), target, tmp_path)
    assert record.source.endswith("gpu_faults.hip")
    if target[0] == "rocm" and not _has_bfloat16(record):
        pytest.skip("this HIP has no hip/hip_bf16.h (it came with ROCm 6)")
    built(wrongs.spec_in(tmp_path), target, tmp_path)
    device, arch = target
    path = users.write_spec(tmp_path)
    evidence = run(path, tmp_path, device=device, arch=arch, build_only=True, shapes={"n": 192})
    assert evidence.verdict is Verdict.BUILT, evidence.reason
    assert len(evidence.builds) > 1  # compile-time parameters and symbols have builds of their own


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "typedef float four __attribute__((ext_vector_type(4)));\n"
            "__global__ void vector_add(const float* a, const float* b, float* c, int n) {\n"
            "    four v = *(const four*)a; *(four*)c = v + v;\n}\n",
            "nvcc_leaves_out_the_attribute_ext_vector_type",
        ),
        (
            "__global__ void vector_add(const float* a, const float* b, float* c, int n) {\n"
            "    __shared__ float all[25000];\n"
            "    all[threadIdx.x] = a[threadIdx.x]; __syncthreads(); c[n - 1] = all[n % 7];\n}\n",
            "uses too much shared data",
        ),
    ],
)
def test_what_nvcc_leaves_out_or_cannot_hold_is_told(
    body: str, words: str, target: tuple[str, str], tmp_path: Path
) -> None:
    device, arch = target
    if device != "cuda":
        pytest.skip("nvcc's own ways")
    spec = write_example(tmp_path, kernel=f"#include <hip/hip_runtime.h>\n{body}")
    evidence = run(spec, tmp_path, device=device, arch=arch, build_only=True, shapes={"n": 100})
    assert evidence.verdict is Verdict.BUILD_FAILED
    assert words in evidence.reason


# What cuda has of the cpu device's headers, each used once.
WIDER = """
#include <hip/hip_runtime.h>
#include <hip/hip_complex.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp8.h>
#include <hip/hip_math_constants.h>
#include <hipcub/hipcub.hpp>
namespace cg = cooperative_groups;
__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  HIP_DYNAMIC_SHARED(float, dynamic)
  using Reduce = hipcub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage storage;
  float v = Reduce(storage).Reduce(a[hipThreadIdx_x], hipcub::Max());
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  v += cg::reduce(tile, v, cg::plus<float>());
  __hip_fp8_e4m3 eight(v);
  v += float(eight) + __hip_cvt_float_to_fp8(v, __HIP_SATFINITE, __HIP_E5M2);
  v += hipCabsf(hipCmulf(make_hipFloatComplex(1, v), make_hipFloatComplex(v, 2))) + HIP_PI_F;
  __hip_atomic_fetch_add(c, 1.0f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __builtin_nontemporal_store(v + __builtin_nontemporal_load(b), c + 1);
  if (n < 0) dynamic[0] = v;
#ifdef REACHED
  c[2] = REACHED;
#endif
}
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", ""),
        slow("__device__ __hip_fp8_e4m3_fnuz none;", "CUDA has no FNUZ formats"),
        slow("#include <rocprim/rocprim.hpp>", "on cuda use hipCUB"),
        (
            "__device__ int lane() { return __builtin_amdgcn_readlane(1, 2); }\n#define REACHED lane()",
            "an AMD GPU intrinsic",
        ),
    ],
)
def test_headers_beside_the_runtime_s_on_cuda(
    line: str, words: str, target: tuple[str, str], tmp_path: Path
) -> None:
    device, arch = target
    if device != "cuda":
        pytest.skip("ROCm has its own")
    spec = write_example(tmp_path, kernel=WIDER.replace("__global__", f"{line}\n__global__", 1))
    evidence = run(spec, tmp_path, device=device, arch=arch, build_only=True, shapes={"n": 100})
    assert evidence.verdict is (Verdict.BUILD_FAILED if words else Verdict.BUILT), evidence.reason
    assert words in evidence.reason


def test_the_child_says_in_the_runtimes_words_that_there_is_no_gpu(
    target: tuple[str, str], tmp_path: Path
) -> None:
    device, arch = target
    options = DeviceOptions(arch=arch, gpu=1)
    if devices.get(device).probe(DeviceOptions()).available:
        pytest.skip("there is a GPU")
    loaded = spec.load(spec.find("softmax"))
    case = plan.plan(loaded, plan.Selection()).cases[0]
    chosen = devices.get(device)
    artifact = build.build(build.harness_request(case), chosen.recipe(options, {}, ()))
    words = {
        "cuda": "cudaGetDeviceCount: cudaError(InsufficientDriver|NoDevice) ",
        "rocm": "hipGetDeviceCount: hipError(NoDevice|InvalidDevice) ",
    }
    with pytest.raises(InadmissibleError, match=words[device]) as caught:
        child.Server(
            chosen.launch_command(artifact.path, options),
            chosen.launch_environment(options),
            artifact.request,
        )
    assert "the runtime shows 0 GPUs, and GPU 1 was asked for" in str(caught.value)


def test_a_missing_device_is_inadmissible_and_still_builds(
    target: tuple[str, str], tmp_path: Path
) -> None:
    device, _ = target
    if devices.get(device).probe(DeviceOptions()).available:
        pytest.skip("there is a GPU")
    evidence = run("gemm-bw", tmp_path, device=device, shapes={"m": 16, "n": 16, "k": 16})
    assert evidence.verdict is Verdict.INADMISSIBLE
    assert evidence.verdict.exit_code == 3
    assert "remains inadmissible" in evidence.reason
    assert "--build-only compiles here" in evidence.reason
    assert not evidence.builds
    built("gemm-bw", target, tmp_path, shapes={"m": 16, "n": 16, "k": 16})


def test_another_architecture_is_another_build_and_the_first_one_stays(
    target: tuple[str, str], tmp_path: Path
) -> None:
    device, arch = target
    other = {"sm_90": "sm_80", "gfx1030": "gfx90a", "gfx90a": "gfx1030"}[arch]
    first = built("embedding", target, tmp_path)
    second = built("embedding", (device, other), tmp_path)
    assert first.artifact_sha256 != second.artifact_sha256
    again = run("embedding", tmp_path, device=device, arch=arch, build_only=True)
    assert list(again.volatile.build_cached.values()) == [True]
    (record,) = again.builds.values()
    assert record.artifact_sha256 == first.artifact_sha256


def test_an_architecture_without_device_library_fails_with_clangs_words(tmp_path: Path) -> None:
    """Debian's ROCm 5.2 has no library for gfx1101; where a newer one has, there is nothing to see."""
    if not devices.get("rocm").probe(DeviceOptions()).buildable:
        pytest.skip(MISSING["rocm"])
    evidence = run("gemm-bw", tmp_path, device="rocm", arch="gfx1101", build_only=True)
    if evidence.verdict is Verdict.BUILT:
        pytest.skip("this ROCm has a device library for gfx1101")
    assert evidence.verdict is Verdict.BUILD_FAILED
    assert "cannot find ROCm device library for gfx1101" in evidence.reason
    assert "look at --arch" in evidence.reason


FAKE = """#!/bin/sh
case "$1" in --version|-print*) echo "HIP version: 6.0.0"; exit ;; esac
echo "clang++: error: cannot find ROCm device library; provide its path via '--rocm-path' or" \\
  "'--rocm-device-lib-path', or pass '-nogpulib' to build without ROCm device library" >&2
exit 1
"""


def test_a_toolchain_that_lacks_its_libraries_case_26(tmp_path: Path) -> None:
    hipcc = tmp_path / "hipcc"
    hipcc.write_text(FAKE)
    hipcc.chmod(0o755)
    words = ("verify", "gemm-bw", "--device", "rocm", "--build-only", "-q", "--out", tmp_path)
    done = tokitai(*words, env={"HIPCC": str(hipcc)})
    assert done.returncode == Verdict.BUILD_FAILED.exit_code, done.stderr
    assert "cannot find ROCm device library" in done.stdout
    assert "look at --arch" in done.stdout
    assert "ROCM_PATH" in done.stdout
    found = json.loads((tmp_path / "gemm-bw.json").read_text(encoding="utf-8"))
    (record,) = found["builds"].values()
    assert any("cannot find ROCm device library" in line for line in record["failed"])
    native = tokitai(*words, "--arch", "native", env={"HIPCC": str(hipcc)})
    assert native.returncode in (Verdict.BUILD_FAILED.exit_code, Verdict.INADMISSIBLE.exit_code)
    assert "--arch gfx1101" in native.stdout


def test_no_compiler_at_all_case_26(tmp_path: Path) -> None:
    for name in ("sh", "cat", "grep", "sleep", "kill", "rm"):
        found = shutil.which(name)
        if found:
            (tmp_path / name).symlink_to(found)
    words = ("verify", "gemm-bw", "--device", "rocm", "--build-only", "-q", "--out", tmp_path)
    done = tokitai(*words, env={"PATH": str(tmp_path), "HIPCC": str(tmp_path / "none")})
    assert done.returncode == Verdict.BUILD_FAILED.exit_code
    assert "no hipcc" in done.stdout


@pytest.mark.slow
def test_a_wrapper_around_the_compiler_is_another_compiler_case_23(tmp_path: Path) -> None:
    real = shutil.which("hipcc")
    if real is None:
        pytest.skip(MISSING["rocm"])
    keys: set[str] = set()
    for version in ("one", "two"):
        wrapper = tmp_path / "hipcc"
        wrapper.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version}\nexec {real} "$@"\n')
        wrapper.chmod(0o755)
        os.utime(wrapper, (1e9, 1e9 + len(keys)))
        words = ("verify", "embedding", "--device", "rocm", "--arch", "gfx1030", "--build-only")
        done = tokitai(*words, "-q", "--out", tmp_path, env={"HIPCC": str(wrapper)})
        assert done.returncode == 0, done.stderr
        found = json.loads((tmp_path / "embedding.json").read_text(encoding="utf-8"))
        (key,) = found["builds"]
        keys.add(key)
        assert found["builds"][key]["compiler"]["version"].startswith(version)
    assert len(keys) == 2
