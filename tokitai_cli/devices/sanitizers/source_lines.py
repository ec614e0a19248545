"""Lines of source behind addresses of an executable, by addr2line or llvm-symbolizer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tokitai_cli.core import elf, process, resources
from tokitai_cli.core.errors import CodeError
from tokitai_cli.core.linked_folders import links_of
from tokitai_cli.devices.environment import compiler_environment
from tokitai_cli.devices.programs import first_program

_LLVM = ("llvm-symbolizer", *(f"llvm-symbolizer-{number}" for number in range(22, 13, -1)))
_SECONDS = 60.0
_KNOWN: dict[tuple[str, str], list[str]] = {}


def lines_of(program: str, offsets: Iterable[str]) -> Mapping[str, list[str]]:
    """`file:line` of each offset (hex), that of the innermost inline function first.

    Empty where neither program is there, or there is no debug information.
    """
    every = list(dict.fromkeys(offsets))
    wanted = [offset for offset in every if (program, offset) not in _KNOWN]
    if wanted:
        _KNOWN.update(_asked(program, wanted))
    return {offset: _KNOWN.get((program, offset), []) for offset in every}


def _asked(program: str, wanted: list[str]) -> dict[tuple[str, str], list[str]]:
    found = first_program([(name, name) for name in ("addr2line", *_LLVM)])
    if found is None or not Path(program).is_file():
        return {}
    try:
        base = _base(Path(program))
    except CodeError:
        return {}
    told = [f"0x{int(offset, 16) + base:x}" for offset in wanted]
    argv = [str(found[0]), "-e", program, "-a", "-i", "-f"]
    if found[1] != "addr2line":
        argv = [str(found[0]), f"--obj={program}", "-a", "--inlines", "--output-style=GNU"]
    done = process.run([*argv, *told], env=compiler_environment(), timeout=_SECONDS)
    links, lines = links_of(Path(program).parent), dict[int, list[str]]()
    here: list[str] = []
    for line in done.stdout.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            here = lines.setdefault(int(line, 16), [])
        elif match := re.match(
            r"(?P<place>/.*?:[1-9]\d*)(?::\d+)?(?: \(discriminator \d+\))?$", links.text(line)
        ):
            here.append(match["place"])
    return {
        (program, offset): lines.get(int(address, 16), [])
        for offset, address in zip(wanted, told, strict=True)
    }


def own(places: Iterable[str], *, only: bool = False) -> str:
    """The first of `places` that is in no header of the tool or the system; else the first, or none."""
    known = list(places)
    foreign = (str(resources.kernels_dir() / "host"), str(resources.kernels_dir() / "harness"))
    mine = (one for one in known if not one.startswith((*foreign, "/usr/")))
    return next(mine, known[0] if known and not only else "")


def _base(path: Path) -> int:
    """Address of an executable's first byte: 0 where it can be moved."""
    with elf.opened(path.read_bytes()) as file:
        if file["e_type"] != "ET_EXEC":
            return 0
        return min((part["p_vaddr"] for part in file.iter_segments("PT_LOAD")), default=0)


# What g++ says of every vector type, whose name in the source is another.
_VECTOR = re.compile(r"\b(?:struct )?HIP_vector_type\b(?:<[^<>]*>)?")
_VECTORS = re.compile(r"\b(u?(?:char|short|int|long|longlong)|float|double)([1-4])\b")
_BYTES = {"char": 1, "short": 2, "int": 4, "float": 4, "long": 8, "longlong": 8, "double": 8}
_ALIGNMENT = re.compile(r"\basks for (\d+) bytes\b")


def with_vectors(message: str, location: str) -> str:
    """`message` with a vector type by its name in the source, of several those of its alignment."""
    if not _VECTOR.search(message):
        return message
    file, _, line = location.partition(", ")[0].rpartition(":")
    try:
        text = Path(file).read_text("utf-8", "replace").splitlines()[int(line) - 1]
    except (OSError, ValueError, IndexError):
        text = ""
    alignment = _ALIGNMENT.search(message)
    names = {
        component + count
        for component, count in _VECTORS.findall(text)
        if alignment is None or int(alignment[1]) == _alignment(component, int(count))
    }
    return _VECTOR.sub(" or ".join(sorted(names)) or "vector", message)


def _alignment(component: str, count: int) -> int:
    """Bytes: two and four components align as the whole, one and three as a component."""
    return _BYTES[component.removeprefix("u")] * (count if count in {2, 4} else 1)
