"""Params of a shape and the sizes that a spec derives from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.spec import Expression, Spec

if TYPE_CHECKING:
    from tokitai_cli.core.model.case import Shape


def sizes_at(spec: Spec, shape: Shape) -> Shape:
    """The params of `shape` and the spec's derived sizes there, by name.

    Raises SpecError (without a location) for a size that has no value there.
    """
    if not spec.sizes:
        return shape
    known = dict(shape)
    for name, text in spec.sizes.items():
        try:
            known[name] = expressions.evaluate(text, known)
        except SpecError as error:
            raise SpecError(f"size `{name}`: {error.message}", hint=error.hint) from None
    return known


def params_behind(sizes: Mapping[str, Expression], names: Iterable[str]) -> tuple[str, ...]:
    """Names that no size of `sizes` has, of those that `names` are or follow from, in their order."""
    found: dict[str, None] = {}
    for name in names:
        if name in sizes:
            found |= dict.fromkeys(params_behind(sizes, expressions.names_in(sizes[name])))
        else:
            found[name] = None
    return tuple(found)
