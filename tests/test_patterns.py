"""C++ is read by preprocessor and tree: patterns stay where what they read is no C++ syntax."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "tokitai_cli"
ROOMS = ("cpp", "drafts", "build", "adequacy/mutation")
#: Modules of the rooms that read C++ which may import `re`, and what their patterns read.
PATTERNS = {
    "cpp/lexing.py": "tokens and literals, before a preprocessor runs",
    "cpp/comments.py": "comments",
    **dict.fromkeys(
        (
            "cpp/float_arithmetic.py",
            "cpp/layouts.py",
            "cpp/sums_and_maxima.py",
            "cpp/value_constraints.py",
            "drafts/arguments.py",
            "drafts/array_draws.py",
            "drafts/known_facts.py",
            "drafts/likely_values.py",
            "drafts/sizing.py",
        ),
        "English words in names",
    ),
    **dict.fromkeys(
        ("drafts/compiled.py", "drafts/formula_text.py", "drafts/search.py", "drafts/writer.py"),
        "letters of a name, for another language",
    ),
    **dict.fromkeys(
        [
            *("drafts/guessed_sizes.py", "drafts/host_sizes.py", "drafts/launching.py"),
            *("drafts/like.py", "drafts/suites.py"),
        ],
        "expressions of sizes, and names",
    ),
    "drafts/render.py": "YAML",
    "drafts/trial/attempt.py": "messages of compilers and of the run",
    **dict.fromkeys(
        ("build/branches.py", "build/compiler.py", "build/dropped.py", "build/steps.py"),
        "what a compiler prints",
    ),
    "build/harness_text.py": "places in structs, as specs have them",
    "build/inputs.py": "rules of make",
    **dict.fromkeys(
        ("build/ptx.py", "build/ptx_memory.py", "build/ptx_operands.py", "build/ptx_table.py"),
        "PTX",
    ),
    "build/scan.py": "names of what a device does not have",
    "build/taking.py": "the lines that the tool itself has written",
}


def test_patterns_read_no_cpp() -> None:
    rooms = (path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))
    found = {path.relative_to(PACKAGE).as_posix() for path in rooms if _imports_re(path)}
    assert found == PATTERNS.keys(), "read C++ by tokitai_cli.cpp, or say here what a pattern reads"


def _imports_re(path: Path) -> bool:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = (
        one.name if isinstance(node, ast.Import) else str(node.module)
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for one in node.names
    )
    return not {"re", "regex"}.isdisjoint(names)
