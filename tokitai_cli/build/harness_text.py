"""The text of the kernels' unit. Its identity is known without rendering: a warm run needs no jinja2."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokitai_cli.build.overloads import named_twice, overloads
from tokitai_cli.core import flags, resources
from tokitai_cli.core.model.device import Recipe
from tokitai_cli.core.model.harness import HarnessRequest, KernelArg
from tokitai_cli.core.model.models import Models
from tokitai_cli.cpp import kernel_names
from tokitai_cli.cpp.lexing import blank
from tokitai_cli.cpp.source.source_files import VERSION, has_host_code
from tokitai_cli.cpp.source_text import own_texts

if TYPE_CHECKING:
    from tokitai_cli.cpp.whole import Program

_TEMPLATE = "harness.cpp.j2"
# What the harness asks of a source's tree; parsing takes time, which sources without do not cost.
_MARKS = ("HIP_DYNAMIC_SHARED", "__constant__", "__launch_bounds__", "texture")
# Headers of HIP whose own text a macro of the source could spoil; taken in before it where it asks.
_HEADERS = ("hip_fp16.h", "hip_bf16.h", "hip_bfloat16.h")

# Of the C++ library, in names of instances.
_FUNCTORS = ("std::plus<", "std::negate<", "std::multiplies<", "std::minus<")


def harness_context(
    request: HarnessRequest,
    recipe: Recipe | None = None,
    folders: Sequence[Path] = (),
    texts: tuple[str, ...] | None = None,
    models: Models | None = None,
) -> dict[str, Any]:
    """Return what the template is rendered with; plain data.

    recipe: whose command line defines macros. folders: of the user's, that an #include is looked for
    in. texts: of the source and its headers, where they are known. models: of the sources.
    """
    texts = tuple(own_texts(request.source, folders)) if texts is None else texts
    plain = [blank(text) for text in texts]
    several = [named_twice(one.expr, plain) for one in request.kernels]
    defines = flags.definitions(recipe.command) if recipe else dict(request.defines)
    models = models or Models()
    names = overloads(request, several, folders, defines, models)
    taken = {"taken": VERSION} if has_host_code(texts) else {}
    marked = any(map(_is_marked, plain))
    programs = _programs(request, recipe, folders, models) if marked else []
    return {
        **taken,
        **({"cuda": True} if request.source.suffix in {".cu", ".cuh"} else {}),
        **_memory(programs),
        "source": str(request.source),
        "kernels": [
            {
                "expr": kernel.expr,
                **_address(expr, index, kernel.references),
                "bound": _bound(kernel.expr, programs),
                "args": [_argument(arg) for arg in kernel.args],
            }
            for index, (kernel, expr) in enumerate(zip(request.kernels, names, strict=True))
        ],
        "references": [*dict.fromkeys(name for one in request.kernels for name in one.references)],
        "symbols": [{"name": name, "dtype": dtype} for name, dtype in request.symbols],
        "functors": any(word in one.expr for one in request.kernels for word in _FUNCTORS),
        "macros": list(flags.macros(recipe.command)) if recipe else [],
        "branch": dict(recipe.branch) if recipe else {},
        "copies": recipe is not None and recipe.shows_copies,
        "headers": [name for name in _HEADERS if any(f"<hip/{name}>" in text for text in texts)],
    }


def _is_marked(plain: str) -> bool:
    """Whether a text without comments may declare what the harness is to know of."""
    dynamic = "__shared__" in plain and "extern" in plain
    return dynamic or any(word in plain for word in _MARKS)


def _programs(
    request: HarnessRequest, recipe: Recipe | None, folders: Sequence[Path], models: Models
) -> list[Program]:
    """The source as each pass of the compiler reads it."""
    from tokitai_cli.cpp.policy import CUDA, passes_of  # parsers that other builds do without
    from tokitai_cli.cpp.programs import Programs

    read = models.of(Programs)
    if recipe is None:
        return [read.of(request.source, folders, dict(request.defines))]
    cuda, defines = request.source.suffix in CUDA, flags.definitions(recipe.command)
    passes = passes_of(recipe.device, recipe.arch, cuda, defines, recipe.branch)
    found = (read.read(request.source, folders, one) for one in passes)
    return list({id(one): one for one in found}.values())


def _bound(expr: str, programs: Sequence[Program]) -> int:
    """Most threads of a kernel's blocks; 0 where nothing says so."""
    if not programs:
        return 0
    from tokitai_cli.cpp.source.launch_bounds import bound_of

    return next(filter(None, (bound_of(one, expr) for one in programs)), 0)


def _memory(programs: Sequence[Program]) -> dict[str, Any]:
    """What the template is told of the memory that a source declares."""
    if not programs:
        return {"dynamic_shared": [], "shared_classes": False}
    from tokitai_cli.cpp.source.device_memory import memory_of

    return memory_of(programs)._asdict()


def _address(expr: str, index: int, references: Sequence[str]) -> dict[str, Any]:
    """C++ expressions for a kernel's address and name; a pointer's type chooses one of several.

    references: textures at namespace scope, which a function in front of the kernel sets.
    """
    name, types = kernel_names.overload(expr)
    overload = {"name": name, "types": types} if types else None
    address = f"tokitai_overload_{index}" if types else f"&{expr}"
    called = name if types else expr
    if references:
        called = f"TokitaiTextured<{', '.join([address, *(f'&{one}' for one in references)])}>::run"
        address = f"&{called}"
    return {"address": address, "called": called, "overload": overload}


def _argument(arg: KernelArg) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": arg.kind, **({"dtype": arg.dtype} if arg.dtype else {})}
    if arg.kind == "struct":
        numbers = [re.match(r"\[(\d+)\]", at) for at, _ in arg.fields]
        told["several"] = max((int(one[1]) + 1 for one in numbers if one), default=0)
        told["fields"] = [{"at": at, **_argument(held)} for at, held in arg.fields]
        counts: dict[str, int] = {}
        for at, _ in arg.fields:
            for index in re.finditer(r"(?<=\w)\[(\d+)\]", at):
                counts[at[: index.start()]] = int(index[1]) + 1
        told["arrays"] = sorted(counts.items())
        places = (re.match(r"(?:\[0\])?\.\w+(\[\d+\])?", at) for at, _ in arg.fields)
        told["members"] = len({place[0] for place in places if place})
    return told


def server_source() -> Path:
    """C++ source of the unit that serves kernels."""
    return resources.kernels_dir() / "harness" / "tokitai_server.cpp"


def template_digest() -> str:
    """sha256 over every template of the harness folder."""
    digest = hashlib.sha256()
    for path in sorted((resources.kernels_dir() / "harness").glob("*.j2")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def harness_text(context: Mapping[str, Any]) -> str:
    """C++ source of the kernels' unit: includes the kernel source and describes its kernels."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.kernels_dir() / "harness"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - C++ text; every name was matched by a strict pattern
    )
    return environment.get_template(_TEMPLATE).render(context)
