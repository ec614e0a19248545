"""Start-up: a warm run of the smallest job and the help, against `import numpy`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

from bench._runs import PYTHON, TOKITAI, Line, environment, interleaved, ratio, run

ROUNDS = 10


def measure(folder: Path) -> Iterator[Line]:
    """Wall time of whole processes, interleaved; CPU time beside it as a cross-check."""
    env = environment(folder / "cache")
    commands = {
        "numpy": [PYTHON, "-c", "import numpy"],
        "verify": [TOKITAI, "verify", "gemm-bw", "--m", "64", "--profile", "normal"],
        "help": [TOKITAI, "--help"],
    }
    cpu: dict[str, list[float]] = {name: [] for name in commands}

    def wall(name: str) -> float:
        usage = run(commands[name], env, folder)
        cpu[name].append(usage.cpu)
        return usage.wall

    for name in commands:  # builds the kernel, compiles the modules
        wall(name)
        cpu[name].clear()
    values = interleaved({name: functools.partial(wall, name) for name in commands}, ROUNDS)
    base = f"{1000 * sorted(values['numpy'])[ROUNDS // 2]:.0f} ms for `import numpy`"
    for name, label, target in (
        ("verify", "warm verify gemm-bw --m 64 --profile normal", 4.0),
        ("help", "tokitai --help", 2.5),
    ):
        detail = f"{base}; CPU {ratio(cpu, name, 'numpy'):.2f} x"
        yield Line(label, ratio(values, name, "numpy"), "x", target, detail)
