"""The cuda device: NVIDIA GPUs through nvcc. This version only looks for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tokitai_cli.devices._environment import child_environment, dropped_facts
from tokitai_cli.devices._find import answer, first_program
from tokitai_cli.devices._words import NOT_MACHINE_CODE
from tokitai_cli.errors import InadmissibleError
from tokitai_cli.model.device import DeviceClass, DeviceOptions, Fact, Probe, Recipe

_DRIVER = Path("/proc/driver/nvidia/version")
_NODE = Path("/dev/nvidia0")
_MEND = "run on a machine with an NVIDIA GPU, its driver and the CUDA toolkit (nvcc)"
NOT_SUPPORTED = "running kernels through cuda is not supported by this version"


class CudaDevice:
    """NVIDIA GPUs."""

    name: str = "cuda"
    device_class: DeviceClass = DeviceClass.NVIDIA_GPU
    non_claims: tuple[str, ...] = ("not AMD device evidence", NOT_MACHINE_CODE)

    def probe(self, options: DeviceOptions) -> Probe:
        """Look for the driver, the GPUs and nvcc."""
        gpus, how = _gpus()
        nvcc = _nvcc()
        facts = list(dropped_facts())
        facts += [Fact("gpu", gpu, how) for gpu in gpus]
        if nvcc is not None:
            facts.append(Fact("compiler", str(nvcc[0]), nvcc[1]))
        lacks = [
            text
            for missing, text in (
                (
                    not gpus,
                    "no NVIDIA GPU (looked at nvidia-smi, /proc/driver/nvidia, /dev/nvidia0)",
                ),
                (nvcc is None, "no nvcc (looked in CUDA_HOME, PATH, /usr/local/cuda)"),
            )
            if missing
        ]
        reason = ", ".join(lacks) if lacks else NOT_SUPPORTED
        return Probe(
            self.name,
            self.device_class,
            available=False,
            buildable=False,
            arch=options.arch,
            facts=tuple(facts),
            missing=f"CUDA is unavailable; {reason}; NVIDIA device evidence remains inadmissible",
            mend=_MEND if lacks else "use --device cpu",
        )

    def recipe(
        self, options: DeviceOptions, defines: Mapping[str, str], flags: tuple[str, ...]
    ) -> Recipe:
        """Raise InadmissibleError: nothing is built for a device that cannot run it."""
        del defines, flags
        raise InadmissibleError(self.probe(options).missing)

    def launch_command(self, artifact: Path, options: DeviceOptions) -> tuple[str, ...]:
        """Raise InadmissibleError."""
        del artifact
        raise InadmissibleError(self.probe(options).missing)

    def launch_environment(self, options: DeviceOptions) -> Mapping[str, str]:
        """Environment of the child."""
        del options
        return child_environment()


def _nvcc() -> tuple[Path, str] | None:
    root = os.environ.get("CUDA_HOME", "")
    return first_program(
        [
            (f"{root}/bin/nvcc" if root else "", "CUDA_HOME"),
            ("nvcc", "PATH"),
            ("/usr/local/cuda/bin/nvcc", "/usr/local/cuda"),
        ]
    )


def _gpus() -> tuple[list[str], str]:
    """Names of the GPUs and the source that told them."""
    if not _DRIVER.exists() and not _NODE.exists():
        return [], ""
    query = ("--query-gpu=name,compute_cap", "--format=csv,noheader")
    text = answer(["nvidia-smi", *query])
    if text:
        return [line.strip() for line in text.splitlines() if line.strip()], "nvidia-smi"
    where = _DRIVER if _DRIVER.exists() else _NODE
    return ["NVIDIA GPU, model not told"], str(where)
