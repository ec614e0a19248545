"""Names that others read are words of the field, and few modules share one."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_layering import modules

#: Words that say nothing of what they name. `left` stands beside `right` alone.
FILLERS = {"told", "one", "found", "mend", "mine", "other", "asked", "wanted", "left"}


def _said(names: list[str]) -> set[str]:
    plain = {name.strip("_").lower() for name in names}
    return plain & FILLERS - ({"left"} if "right" in plain else set())


def fillers(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Lines and names of fields, public functions, their parameters, and module-level code."""
    fields = [
        node.target.id
        for node in body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    yield from ((0, name) for name in _said(fields))
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if not node.name.startswith("_"):
                names = [node.name, *(one.arg for one in given)]
                yield from ((node.lineno, name) for name in _said(names))
        elif isinstance(node, ast.ClassDef):
            if not node.name.startswith("_"):
                yield from fillers(node.body)
        elif not isinstance(node, ast.AnnAssign):
            stored = [
                one.id
                for one in ast.walk(node)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
            ]
            yield from ((node.lineno, name) for name in _said(stored) if not _is_inner(node))


def _is_inner(node: ast.stmt) -> bool:
    """Whether names of a statement may be those of a comprehension, which nobody else sees."""
    return any(isinstance(one, ast.comprehension) for one in ast.walk(node))


@pytest.mark.parametrize(
    "room", sorted({path.parent for path in modules()}), ids=lambda path: path.name
)
def test_no_name_that_others_read_is_a_filler(room: Path) -> None:
    said = [
        f"{path.name}:{line}: {name}"
        for path in sorted(room.glob("*.py"))
        for line, name in fillers(ast.parse(path.read_text(encoding="utf-8")).body)
    ]
    assert said == []


def test_few_modules_share_a_name() -> None:
    counted = Counter(path.stem for path in modules() if path.stem != "__init__")
    assert sum(count > 1 for count in counted.values()) < 15
