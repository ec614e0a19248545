"""What is read of a Python file without running it: whether it can define a function of the spec's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tokitai_cli.core.errors import SpecError, near

if TYPE_CHECKING:
    import ast

# Arguments of a function, and the names of those that it may have beside them.
Signature = tuple[tuple[str, ...], frozenset[str]]
ORACLE: Signature = (("params", "inputs", "scalars"), frozenset({"reduction"}))
DRAW: Signature = (("params", "shape", "rng"), frozenset({"inputs", "dtype"}))


def check_function(file: Path, name: str, signature: Signature) -> None:
    """Raise SpecError where `file` cannot define the function `name`, or not with those arguments.

    What it might define in other ways than by its text is let pass.
    """
    import ast

    tree = _tree(file)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    names = set[str]()  # that the rest of the file uses or binds
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.ClassDef) or (
            isinstance(node, ast.FunctionDef) and node not in tree.body
        ):
            names.add(node.name)
    if name in names or names & {"*", "exec", "globals"}:
        return
    if name not in functions:
        raise SpecError(f"{file.name} defines no function {name}", hint=near(name, functions))
    found = functions[name]
    if not found.decorator_list and not _takes(found.args, signature):
        said = f"{file.name}:{found.lineno}: {name} cannot be called with three arguments"
        raise SpecError(said, hint=f"write def {name}({', '.join(signature[0])})")


def function_text(text: str, name: str) -> str:
    """The function `name` of a file's text with the definitions of the file that it leads to, as
    written; empty where it is not there.
    """
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    bound: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound |= {one.id: node for one in targets if isinstance(one, ast.Name)}
    if not isinstance(bound.get(name), ast.FunctionDef):
        return ""
    kept, todo = set[str](), [name]
    while todo:
        if (at := todo.pop()) in bound and at not in kept:
            kept.add(at)
            todo += [one.id for one in ast.walk(bound[at]) if isinstance(one, ast.Name)]
    lines = text.splitlines()
    nodes = {id(node): node for at, node in bound.items() if at in kept}
    parts = [
        "\n".join(lines[_first_line(node) - 1 : node.end_lineno])
        for node in sorted(nodes.values(), key=lambda one: one.lineno)
    ]
    return "\n\n".join(parts)


def _first_line(node: ast.stmt) -> int:
    """Line that a definition begins on: that of its first decorator, where it has any."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _tree(file: Path) -> ast.Module:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(file.read_bytes())
    except OSError as error:
        raise SpecError(f"{file.name} cannot be read: {error.strerror}") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        told = error.msg if isinstance(error, SyntaxError) else str(error)
        raise SpecError(f"{file.name}{line} is not valid Python: {told}") from None


def _takes(given: ast.arguments, signature: Signature) -> bool:
    count = len(signature[0])
    named = [one.arg for one in (*given.posonlyargs, *given.args)]
    places = len([one for at, one in enumerate(named) if at < count or one not in signature[1]])
    needed = places - len(given.defaults)
    enough = places >= count or given.vararg is not None
    told = [
        one.arg for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if not value
    ]
    return needed <= count and enough and set(told) <= signature[1]
