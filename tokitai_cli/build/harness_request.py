"""From cases to the harness that serves them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tokitai_cli.core import expressions, flags, resources
from tokitai_cli.core.errors import BuildError, Location, SpecError
from tokitai_cli.core.model.buffers import symbols_of
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.harness import HarnessRequest, KernelEntry, kernel_entry
from tokitai_cli.core.model.spec import Variant


def harness_request(case: Case, only: Collection[str] | None = None) -> HarnessRequest:
    """Harness that serves the case, and every variant of its spec with the same build.

    Variants share a harness where source, defines, flags and symbols are the same, whether or not
    they were selected: narrowing a run must not build another artifact. `only` names fewer of them,
    so that a fault of one cannot fail the build of the others; with none the harness has the source
    and no kernel. Raises SpecError for a file name that cannot stand in C++ source text.
    """
    source = source_path(case)
    if any(mark in str(source) for mark in '"\n\r\\'):
        raise SpecError(
            f"the path of the kernel source cannot be included: {source}",
            where=Location(case.loaded.path, key=f"variants.{case.variant_name}.source"),
            hint="use a folder without quotes, backslashes and line breaks",
        )
    kernels: dict[KernelEntry, str] = {}
    for name in sharing(case) if only is None else only:
        variant = case.loaded.spec.variants[name]
        for index, launch in enumerate(variant.launches):
            entry = kernel_entry(variant, launch, case.warp_size)
            kernels.setdefault(entry, f"variants.{name}.launches[{index}]")
    symbols = tuple((name, buffer.dtype) for name, buffer in symbols_of(case.variant).items())
    return HarnessRequest(
        source, tuple(kernels), symbols, defines_of(case), tuple(kernels.values())
    )


def sharing(case: Case) -> tuple[str, ...]:
    """Variants of the spec that share the case's harness, its own among them, in the spec's order."""
    return tuple(
        name
        for name, variant in case.loaded.spec.variants.items()
        if _shared(variant) == _shared(case.variant)
    )


def defines_of(case: Case) -> tuple[tuple[str, str], ...]:
    """Values of the variant's compile-time parameters for the case's shape, as C++ text."""
    return tuple(
        (name, str(text if isinstance(text, int) else expressions.evaluate(text, case.names)))
        for name, text in sorted(case.variant.defines.items())
    )


def flags_of(case: Case) -> tuple[str, ...]:
    """Compiler flags of the variant, its `include` first; paths in them start at the spec's folder.

    Raises BuildError where an entry of `include` is neither a folder nor a file.
    """
    given = []
    for index, entry in enumerate(case.variant.include):
        place = case.loaded.folder / entry
        if not place.exists():
            raise BuildError(
                f"a file or folder under `include` does not exist: {entry}",
                where=Location(
                    case.loaded.path, key=f"variants.{case.variant_name}.include[{index}]"
                ),
                hint="give a folder or a header, relative to the spec file",
            )
        given.append(f"{'-I' if place.is_dir() else '-include'}{entry}")
    return flags.resolved((*given, *case.variant.flags), case.loaded.folder)


def source_path(case: Case) -> Path:
    """Absolute path of the variant's kernel source; raises BuildError where it is no file."""
    path = resources.file_of(case.loaded.folder, case.variant.source).resolve()
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise BuildError(
            f"the kernel source {what}: {path}",
            where=Location(case.loaded.path, key=f"variants.{case.variant_name}.source"),
            hint="the path is relative to the spec file",
        )
    return path


def _shared(variant: Variant) -> tuple[object, ...]:
    """Everything of a variant that its artifact depends on, but its kernels."""
    symbols = [(name, buffer.dtype) for name, buffer in symbols_of(variant).items()]
    return variant.source, variant.defines, variant.include, variant.flags, symbols
