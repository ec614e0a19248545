"""Compilers of this machine that tests name by themselves."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

CLANG = next(
    filter(shutil.which, ("clang++", *(f"clang++-{number}" for number in range(22, 13, -1)))), ""
)


@functools.cache
def has_sanitizers(compiler: str) -> bool:
    """Whether programs link against the compiler's AddressSanitizer, which is a package of its own."""
    if not compiler or shutil.which(compiler) is None:
        return False
    with TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text("int main() { return 0; }\n", encoding="utf-8")
        argv = [compiler, "-fsanitize=address", str(source), "-o", str(source.with_suffix(""))]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0
