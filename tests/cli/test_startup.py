"""What a command loads: heavy libraries only where they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    *("jinja2", "matplotlib", "ml_dtypes", "numpy", "pydantic", "rich", "cryptography"),
    *("html", "statistics", "urllib.request", "xml"),
}
CODE = """
import sys
from tokitai_cli.cli.main import main
try:
    main(sys.argv[1:])
finally:
    sys.stderr.write("loaded: " + " ".join(sys.modules))
"""


def loaded(*arguments: str) -> set[str]:
    """Modules in `sys.modules` at the end of a command."""
    command = [sys.executable, "-c", CODE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, _, names = done.stderr.partition("loaded: ")
    return set(names.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("verify", "--help"),
        ("verify", "gemm-bw", "--help"),
        ("schema", "spec"),
    ],
    ids=" ".join,
)
def test_small_commands_load_nothing_heavy(arguments: tuple[str, ...]) -> None:
    modules = loaded(*arguments)
    assert "tokitai_cli.cli.app" in modules
    assert not modules & HEAVY


def test_help_reads_no_spec_and_no_evidence() -> None:
    assert not {"yaml", "tokitai_cli.evidence"} & loaded("--help")
    assert "yaml" in loaded("verify", "gemm-bw", "--help")


def test_a_shipped_op_needs_no_reader_of_code(tmp_path: Path) -> None:
    run = ("verify", "gemm-bw", "--m", "16", "--device", "cpu", "--profile", "normal")
    command = (*run, "--out", str(tmp_path))
    loaded(*command)  # builds the kernel, and looks into it
    modules = loaded(*command)
    assert "tokitai_cli.build.artifact" in modules
    readers = {
        "tokitai_cli.devices.amdgpu.binary.objects",
        "tokitai_cli.cpp.whole",
        "tokitai_cli.drafts",
        *("pcpp", "tree_sitter", "numpy.ma"),
    }
    assert not modules & {*readers, "tokitai_cli.spec.reader.kernel_signatures", "elftools"}


def test_the_entry_point_is_there_before_anything_else() -> None:
    """An interrupt while more is imported finds the `try` that answers for it."""
    code = (
        "import sys; before = set(sys.modules); import tokitai_cli.cli.main; "
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = {"tokitai_cli", "tokitai_cli.cli", "tokitai_cli.cli.main"}
    own |= {"tokitai_cli.core", "tokitai_cli.core.version"}
    assert set(done.stdout.split()) - {"__future__"} == own
