"""`python -m bench.gpu [DEVICE]`: speed on a GPU, with what it is measured against in the same run.

Prints the GPU's name and one line per figure, as `python -m bench` does.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench._runs import PYTHON, ROOT, Line, environment, run
from tokitai_cli import build, devices, spec
from tokitai_cli.core import resources
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.run.child import Server
from tokitai_cli.spec import inputs, plan

ROUNDS = 3
OPTIONS = DeviceOptions()
# Op, variant and profile of products.
SMALL, LARGE = ("gemm-bw", "grad-a", "normal"), ("gemm", "f16", "exact-int")
COPIED = 1 << 26  # floats: 256 MiB
COPY_KERNEL = """#include <hip/hip_runtime.h>
__global__ void copy(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
"""
COPY_SPEC = {
    "schema": "tokitai/spec/v1",
    "op": "copy",
    "title": "Copies an array",
    "params": {"n": {"default": COPIED}},
    "variants": {
        "only": {
            "source": "copy.hip",
            "oracle": "oracle.py:copy",
            "inputs": {"x": {"dtype": "float32", "shape": ["n"]}},
            "outputs": {"y": {"dtype": "float32", "shape": ["n"]}},
            "checks": [{"metric": "bound"}],
            "launches": [
                {
                    "kernel": "copy",
                    "grid": ["ceil_div(n, 256)"],
                    "block": [256],
                    "args": ["x", "y", "n"],
                }
            ],
        }
    },
    "profiles": {"ones": {"draw": {"kind": "constant", "value": 1.0}}},
}


def main(device: str) -> int:
    """Measure; returns 1 where a target is missed and 3 where the device is not there."""
    probe = devices.get(device).probe(OPTIONS)
    if not probe.available:
        sys.stderr.write(f"{probe.missing}\n")
        return 3
    names = [fact.value for fact in probe.facts if fact.name in ("gpu", "agent")]
    _write(f"{device}: {'; '.join(names)}; {len(os.sched_getaffinity(0))} cores")
    missed = 0
    with tempfile.TemporaryDirectory(prefix="tokitai-bench-") as folder:
        for line in measure(device, Path(folder)):
            verdict = {True: "reached", False: "MISSED", None: "-"}[line.passed]
            bound = ">=" if line.at_least else "<="
            target = f"{bound} {line.target:g}" if line.target is not None else "-"
            figures = f"{line.value:9.3f} {line.unit:2} {target:>8} {verdict:7}"
            _write(f"{line.name:58} {figures} {line.detail}")
            missed += line.passed is False
    return 1 if missed else 0


def measure(device: str, folder: Path) -> Iterator[Line]:
    """All figures of one device."""
    yield from _products(device, folder)
    yield from _large(device, folder)
    yield from _transfers(device, folder)


def _large(device: str, folder: Path) -> Iterator[Line]:
    """A product whose float64 reference is not computed: a sample by its bound, the whole by vectors."""
    _verified(device, folder, 64, LARGE)  # builds
    seconds, stages = _verified(device, folder, 16384, LARGE)
    yield Line("gemm f16 16384^3, whole numbers, end to end", seconds, "s", 90.0, _parts(stages))
    judged = stages.get("oracle", 0.0) + stages.get("compare", 0.0)
    yield Line("the same, oracle and comparison", judged, "s", 30.0, "")


def _products(device: str, folder: Path) -> Iterator[Line]:
    child = _built_by_device(device, "text_child.hip", folder)
    client = str(folder / "text_client")
    run(["g++", "-O2", str(ROOT / "bench" / "text_client.cpp"), "-o", client], os.environ, folder)
    _verified(device, folder, 64)  # builds
    ours: list[float] = []
    texts: list[float] = []
    stages: Mapping[str, float] = {}
    said = ""
    for _ in range(ROUNDS):
        seconds, stages = _verified(device, folder, 1024)
        ours.append(seconds)
        done = subprocess.run([client, child, "1024"], capture_output=True, text=True, check=True)
        texts.append(float(done.stdout.split()[0]))
        said = done.stdout.strip().partition(" ")[2]
    mine, text = statistics.median(ours), statistics.median(texts)
    name = "gemm-bw grad-a 1024^3, end to end, warm cache"
    yield Line(name, mine, "s", 1.0, _parts(stages))
    detail = f"a client that speaks text takes {text:.2f} s ({said})"
    yield Line("the same, times faster than a text protocol", text / mine, "x", 5.0, detail, True)
    seconds, stages = _verified(device, folder, 4096)
    yield Line("gemm-bw grad-a 4096^3, end to end, warm cache", seconds, "s", 12.0, _parts(stages))
    share = stages.get("oracle", 0.0) / sum(stages.values())
    yield Line("the same, share of the oracle in the stages", share, "", 0.5, "", True)


def _transfers(device: str, folder: Path) -> Iterator[Line]:
    """A whole request of a kernel that only copies, against plain copies of the bytes that cross."""
    (folder / "copy.hip").write_text(COPY_KERNEL)
    (folder / "copy.yaml").write_text(json.dumps(COPY_SPEC))
    (folder / "oracle.py").write_text(
        "def copy(params, inputs, scalars):\n    return dict(inputs)\n"
    )
    (case,) = plan.plan(spec.load(folder / "copy.yaml"), plan.Selection()).cases
    chosen = devices.get(device)
    artifact = build.build(build.harness_request(case), chosen.recipe(OPTIONS, {}, ()))
    arrays = {name: drawn.array for name, drawn in inputs.draw(case).items()}
    seconds = []
    command = chosen.launch_command(artifact.path, OPTIONS)
    with Server(command, chosen.launch_environment(OPTIONS), artifact.request) as server:
        for _ in range(ROUNDS + 1):
            start = time.perf_counter()
            server.run(case, arrays, repetitions=2)
            seconds.append(time.perf_counter() - start)
    mine = statistics.median(seconds[1:])  # the first one makes the memory
    size = 4 * COPIED
    plain = _built_by_device(device, "pageable.hip", folder)
    done = subprocess.run(
        [plain, str(size), str(3 * size)], capture_output=True, text=True, check=True
    )
    reference = float(done.stdout)
    mib = size >> 20
    detail = (
        f"{mine:.3f} s; counted: {mib} MiB to the GPU (the input once), {3 * mib} MiB back (the output "
        f"of both repetitions, and the input to be compared); pageable copies: {reference:.3f} s"
    )
    yield Line(
        "a request with two repetitions, in pageable copies", mine / reference, "x", 2.0, detail
    )


def _built_by_device(device: str, source: str, folder: Path) -> str:
    """Compile a program of this folder with the device's compiler and flags; returns its path."""
    recipe = devices.get(device).recipe(OPTIONS, {}, ())
    output = folder / Path(source).stem
    kernels = resources.kernels_dir()
    if device == "cuda":
        words = [str(recipe.compiler), "-O3", f"-arch={recipe.arch}", f"-I{kernels / 'cuda'}"]
        words += ["-x", "cu"]
    else:
        words = [str(recipe.compiler), "-O2", f"--offload-arch={recipe.arch}", "-x", "hip"]
    run([*words, str(ROOT / "bench" / source), "-o", str(output)], recipe.environment, folder)
    return str(output)


def _verified(
    device: str, folder: Path, size: int, case: tuple[str, str, str] = SMALL
) -> tuple[float, Mapping[str, float]]:
    """Wall seconds of the command line, and the seconds of its stages. RuntimeError if not verified."""
    op, variant, profile = case
    words = [PYTHON, "-m", "tokitai_cli", "verify", op, "--variant", variant, "--quiet"]
    words += ["--profile", profile, "--device", device, "--out", str(folder / "reports")]
    words += ["--timeout", "120"]
    for name in ("m", "n", "k"):
        words += [f"--{name}", str(size)]
    env = {**environment(folder / "cache"), "PYTHONPATH": _python_path()}
    wall = run(words, env, folder).wall
    found = json.loads((folder / "reports" / f"{op}.json").read_text(encoding="utf-8"))
    (stages,) = found["volatile"]["stage_seconds"].values()
    return wall, stages


def _python_path() -> str:
    given = os.environ.get("PYTHONPATH", "")
    return f"{ROOT}{os.pathsep}{given}" if given else str(ROOT)


def _parts(stages: Mapping[str, float]) -> str:
    return ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in stages.items())


def _write(line: str) -> None:
    sys.stdout.write(f"{line.rstrip()}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["cuda"])))
