"""Rooms import downwards alone, subfolders give what they name, and each library has one home."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "tokitai_cli"
#: Rooms in the order of their floors, each with the rooms that it may import.
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "cpp": {"core"},
    "oracles": {"core"},
    "devices": {"core", "cpp"},
    "spec": {"core", "cpp", "devices", "oracles"},
    "build": {"core", "cpp"},
    "judge": {"core"},
    "evidence": {"core"},
    "report": {"core", "evidence"},
    "run": {"build", "core", "devices", "evidence", "judge", "oracles", "report", "spec"},
    "drafts": {"core", "cpp", "devices", "run", "spec"},
    "adequacy": {"build", "core", "cpp", "devices", "evidence", "judge", "oracles", "run", "spec"},
    "batch": {"core", "cpp", "devices", "evidence", "oracles", "report", "run", "spec"},
    "audit": {"core", "devices", "evidence", "judge", "report", "run", "spec"},
    "cli": {
        *("adequacy", "audit", "batch", "core", "cpp", "devices", "drafts", "evidence"),
        *("report", "run", "spec"),
    },
    "pytest_plugin": {"batch", "core", "devices", "evidence", "run", "spec"},
}
#: Modules that users import by name, each with the rooms that it stands on.
PUBLIC: dict[str, set[str]] = {
    "formula": {"oracles"},
    "testing": {"core", "evidence", "judge", "oracles"},
    "triton": {"core", "devices", "drafts", "run"},
}
HOMES = {
    "typer": {"cli"},
    "rich": {"cli"},
    "yaml": {"spec", "drafts", "adequacy"},
    "jinja2": {"report", "build"},
    "tree_sitter": {"cpp"},
    "tree_sitter_cuda": {"cpp"},
    "pcpp": {"cpp"},
    "subprocess": {"core"},
    "elftools": {"core"},
    "itanium_demangler": {"devices"},
    "zstandard": {"devices"},
    "sqlite3": {"batch"},
    "platformdirs": {"build", "run"},
    "pydantic": set(),
    "cryptography": {"audit", "batch"},
    "minisign": {"audit"},
    "matplotlib": {"report"},
    "pytest": {"pytest_plugin"},
    "dask": {"batch"},
    "distributed": {"batch"},
    "dask_jobqueue": {"batch"},
}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
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


@functools.cache
def module_of(name: str) -> Path:
    """The module or package that a dotted name of the tool imports, or takes something of."""
    place = PACKAGE
    for part in name.split(".")[1:]:
        if place != PACKAGE and part in names_of(place):
            break
        if (place / part / "__init__.py").is_file():
            place = place / part
        elif (place / f"{part}.py").is_file():
            return place / f"{part}.py"
        else:
            break
    return place


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_one_direction(path: Path) -> None:
    here = room(path)
    if here in {"__init__", "__main__"}:
        pytest.skip("the package's front door names what it exports")
    may = ALLOWED[here] if here in ALLOWED else PUBLIC[here] | {"verify"}
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "tokitai_cli" and len(parts) > 1:
            assert parts[1] == here or parts[1] in may, f"{here} imports {name}"
        if parts[0] in HOMES:
            assert here in HOMES[parts[0]], f"{here} imports {parts[0]}"


def test_the_rooms_are_these_sixteen_and_stand_on_lower_floors_alone() -> None:
    rooms = {room(path) for path in modules()} - {"__init__", "__main__"}
    assert rooms == {*ALLOWED, *PUBLIC}
    assert len(ALLOWED) == 16
    below: set[str] = set()
    for name, may in ALLOWED.items():
        assert may <= below, f"{name} may import what stands above it"
        below.add(name)


def test_no_room_may_import_what_it_does_not() -> None:
    seen: dict[str, set[str]] = defaultdict(set)
    for path in modules():
        seen[room(path)] |= {
            name.split(".")[1] for name in imported(path) if name.startswith("tokitai_cli.")
        }
    assert {name: may for name, may in ALLOWED.items() if may - seen[name]} == {}


def test_the_architecture_page_says_the_same() -> None:
    page = PACKAGE.parent / "docs" / "internals" / "architecture.md"
    rows = [line.split("|") for line in page.read_text(encoding="utf-8").splitlines()]
    told = {row[1].strip(): row[3].strip() for row in rows if len(row) == 6}
    assert {name: told[name] for name in ALLOWED} == {
        name: ", ".join(sorted(may)) for name, may in ALLOWED.items()
    }


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_subfolder_gives_what_its_init_names(path: Path) -> None:
    """Outside of its room: where `__init__` has names, those alone; else modules, one by one."""
    for name in imported(path):
        if name.split(".")[0] != "tokitai_cli":
            continue
        target = module_of(name)
        for folder in [target, *target.parents]:
            inner = folder.is_dir() and PACKAGE in folder.parent.parents
            if inner and folder.parent not in path.parents and names_of(folder):
                assert target == folder, f"{name}: {folder.name} gives what its __init__ names"


@functools.cache
def names_of(folder: Path) -> list[str]:
    """All that others may have of a subfolder, where its `__init__` says so in `__all__`."""
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []
