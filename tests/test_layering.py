"""The stages stand on the ground floor and do not import each other; each library has one home."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "tokitai_cli"
GROUND = {
    "dtypes", "errors", "fills", "model", "numerics", "expressions", "flags", "process", "resources",
    "python_source", "sources", "storage", "user_code",
    "kernel_source", "queries", "encoding", "isa",
}  # fmt: skip
STAGES = {"spec", "plan", "inputs", "oracles", "devices", "build", "kernel_server"} | {
    "compare",
    "evidence",
    "checks",
}
ALLOWED: dict[str, set[str]] = {
    **{room: {"dtypes", "errors", "model", "numerics", "storage"} for room in GROUND},
    "kernel_source": {"errors", "resources", "sources"},
    "queries": {"model"},
    "encoding": {"model"},
    "isa": {"dtypes", "errors", "kernel_source", "model", "storage"},
    **dict.fromkeys(STAGES, GROUND),
    "devices": GROUND | {"gfx"},
    "compare": GROUND | {"checks"},
    "user_code": {"answers", "errors", "formula", "model", "process", "storage"},
    "formula": {"dtypes", "numerics"},
    "answers": {"dtypes", "formula"},
    "oracles": GROUND | {"answers", "formula"},
    "report": GROUND,
    "console": GROUND,
    "gfx": GROUND,
    "indices": {"errors", "expressions", "kernel_source"},
    "drafts": GROUND | {"indices", "spec"},
    "pipeline": GROUND | STAGES | {"report", "drafts"},
    "mutation": GROUND | STAGES | {"pipeline"},
    "trial": GROUND | STAGES | {"drafts", "pipeline"},
    "advice": GROUND | STAGES | {"pipeline"},
    "results": GROUND | {"evidence"},
    "batch": GROUND | STAGES | {"pipeline", "report", "results"},
    "every_op": GROUND | STAGES | {"pipeline", "batch"},
    "cluster": GROUND | STAGES | {"pipeline", "batch"},
    "pytest_plugin": GROUND | STAGES | {"pipeline", "batch", "results"},
    "audit": GROUND | STAGES | {"pipeline", "report"},
    "cli": GROUND
    | STAGES
    | {"pipeline", "report", "console", "batch", "cluster", "audit", "mutation", "advice", "gfx"}
    | {"every_op", "trial"},
}
HOMES = {
    "typer": {"cli"},
    "rich": {"cli", "console"},
    "yaml": {"spec", "drafts"},
    "ruamel": {"advice"},
    "jinja2": {"report", "build"},
    "tree_sitter": {"kernel_source"},
    "tree_sitter_cpp": {"kernel_source"},
    "subprocess": {"process"},
    "elftools": {"isa"},
    "itanium_demangler": {"isa"},
    "zstandard": {"isa"},
    "sqlite3": {"results", "batch"},
    "platformdirs": {"build", "pipeline"},
    "pydantic": set(),
    "cryptography": {"audit"},
    "minisign": {"audit"},
    "matplotlib": {"report"},
    "pytest": {"pytest_plugin"},
    "dask": {"cluster"},
    "distributed": {"cluster"},
    "dask_jobqueue": {"cluster"},
}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)


def room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Dotted names of all imports of a file, those inside functions included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_one_direction(path: Path) -> None:
    here = room(path)
    if here in {"__init__", "__main__"}:
        pytest.skip("the package's front door names what it exports")
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "tokitai_cli" and len(parts) > 1 and (PACKAGE / parts[1]).exists():
            assert parts[1] == here or parts[1] in ALLOWED[here], f"{here} imports {name}"
        if parts[0] == "tokitai_cli" and (PACKAGE / f"{parts[1]}.py").exists():
            assert parts[1] == here or parts[1] in ALLOWED[here], f"{here} imports {name}"
        if parts[0] in HOMES:
            assert here in HOMES[parts[0]], f"{here} imports {parts[0]}"


def test_every_room_is_known() -> None:
    rooms = {room(path) for path in modules()} - {"__init__", "__main__"}
    assert rooms <= set(ALLOWED)
