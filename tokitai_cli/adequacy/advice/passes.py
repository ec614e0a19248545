"""Loops of a variant's kernels over tiles of sizes, as its launches run them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokitai_cli.core import flags, resources
from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.spec import Launch, Variant
from tokitai_cli.cpp import kernel_names
from tokitai_cli.cpp.programs import Programs
from tokitai_cli.cpp.source.signatures import Kernel, kernels_of
from tokitai_cli.cpp.tiles import Tiles, facts_of, tiles_of
from tokitai_cli.cpp.whole import Program


def tiles_in(loaded: LoadedSpec, variant: Variant) -> list[Tiles]:
    """Loops over tiles of what the spec passes; none where the source cannot be read."""
    source = resources.file_of(loaded.path.parent, variant.source).resolve()
    if not source.is_file() or is_machine_code(source):
        return []
    given = (*(f"-I{entry}" for entry in variant.include), *variant.flags)
    words = flags.resolved(given, loaded.path.parent)
    try:
        folders = [*flags.include_folders(words)]
        program = loaded.models.of(Programs).of(source, folders, flags.definitions(words))
        kernels = kernels_of(program)
    except (TokitaiError, ValueError, LookupError):
        return []
    every = (
        one for launch in variant.launches for one in _of_launch(variant, launch, kernels, program)
    )
    return list(dict.fromkeys(every))


def _of_launch(
    variant: Variant, launch: Launch, kernels: Sequence[Kernel], program: Program
) -> Iterator[Tiles]:
    named = kernel_names.instance(launch.kernel)
    names = {
        f"{key}.{axis}": f"({one})"
        for key, extents in (("blockDim", launch.block), ("gridDim", launch.grid))
        for axis, one in zip("xyz", [*extents, 1, 1], strict=False)
    }
    for kernel in kernels:
        if kernel.name != named.last:
            continue
        if len(kernel.parameters) != len(launch.args):
            continue
        template = (one.name for one in kernel.template)
        facts = facts_of(program, kernel, dict(zip(template, named.arguments or (), strict=False)))
        own = dict(names)
        for parameter, given in zip(kernel.parameters, launch.args, strict=True):
            own[parameter.name] = f"({given})" if " " in str(given) else str(given)
            fields = variant.structs.get(str(given), {})
            for field, value in fields.items() if isinstance(fields, dict) else ():
                own[f"{parameter.name}.{field}"] = str(value)
        yield from tiles_of(facts, own)
