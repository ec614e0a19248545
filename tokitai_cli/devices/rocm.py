"""The rocm device: AMD GPUs through hipcc and the HIP runtime. This version only looks for it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tokitai_cli.devices._environment import child_environment, dropped_facts
from tokitai_cli.devices._find import answer, first_program, read_text
from tokitai_cli.errors import InadmissibleError
from tokitai_cli.model.device import DeviceClass, DeviceOptions, Fact, Probe, Recipe

_DRIVER = Path("/dev/kfd")
# Topology of the kernel driver amdkfd: one folder per CPU or GPU, with a file of properties.
_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_DEFAULT_ARCH = "gfx1101"
_MEND = "run on a machine with an AMD GPU, its driver (/dev/kfd) and ROCm (hipcc)"
NOT_SUPPORTED = "running kernels through rocm is not supported by this version"


class RocmDevice:
    """AMD GPUs."""

    name: str = "rocm"
    device_class: DeviceClass = DeviceClass.AMD_GPU
    non_claims: tuple[str, ...] = ("not machine-code verification",)

    def probe(self, options: DeviceOptions) -> Probe:
        """Look for /dev/kfd, the agents and hipcc."""
        agents, how = _agents()
        hipcc = _hipcc()
        facts = list(dropped_facts())
        facts += [Fact("agent", agent, how) for agent in agents]
        if hipcc is not None:
            facts.append(Fact("compiler", str(hipcc[0]), hipcc[1]))
        lacks = [
            text
            for missing, text in (
                (not _DRIVER.exists(), "no AMD GPU driver (/dev/kfd)"),
                (not agents, "no AMD GPU"),
                (hipcc is None, "no hipcc (looked in HIPCC, ROCM_PATH, /opt/rocm, PATH)"),
            )
            if missing
        ]
        reason = ", ".join(lacks) if lacks else NOT_SUPPORTED
        return Probe(
            self.name,
            self.device_class,
            available=False,
            buildable=False,
            arch=options.arch or (agents[0] if agents else _DEFAULT_ARCH),
            facts=tuple(facts),
            missing=f"ROCm/HIP is unavailable; {reason}; AMD device evidence remains inadmissible",
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
        return child_environment({"HIP_PLATFORM": "amd"})


def _hipcc() -> tuple[Path, str] | None:
    root = os.environ.get("ROCM_PATH", "")
    return first_program(
        [
            (os.environ.get("HIPCC", ""), "HIPCC"),
            (f"{root}/bin/hipcc" if root else "", "ROCM_PATH"),
            ("/opt/rocm/bin/hipcc", "/opt/rocm"),
            ("hipcc", "PATH"),
        ]
    )


def _agents() -> tuple[list[str], str]:
    """gfx names of the GPUs and the source that told them."""
    if not _DRIVER.exists() and not _NODES.is_dir():
        return [], ""
    root = os.environ.get("ROCM_PATH") or "/opt/rocm"
    for name in ("rocm_agent_enumerator", "rocminfo"):
        program = first_program([(f"{root}/bin/{name}", root), (name, "PATH")])
        if program is not None:
            text = answer([str(program[0])])
            # gfx000 is the enumerator's word for the CPU.
            found = re.findall(r"^(?:\s*Name:\s+)?(gfx[0-9a-f]+)\s*$", text, re.MULTILINE)
            agents = [agent for agent in found if agent != "gfx000"]
            if agents:
                return agents, name
    return _sysfs_agents(), str(_NODES)


def _sysfs_agents() -> list[str]:
    """gfx names from gfx_target_version: major * 10000 + minor * 100 + stepping."""
    agents: list[str] = []
    for node in sorted(_NODES.glob("*/properties")):
        match = re.search(r"^gfx_target_version (\d+)$", read_text(str(node)), re.MULTILINE)
        version = int(match.group(1)) if match else 0
        if version:
            agents.append(f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}")
    return agents
