"""What a variant leaves open: arrays that need not be set, and orders of outputs."""

from __future__ import annotations

from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.model.spec import Order, Spec, Variant
from tokitai_cli.spec.reader.document import Document, KeyPath
from tokitai_cli.spec.reader.launch_rules import ROLES
from tokitai_cli.spec.reader.symbols import check_comparison, check_known, check_real


def check_freedom(document: Document, path: KeyPath, spec: Spec, variant: Variant) -> None:
    """Raise SpecError at the first thing that a variant cannot leave open."""
    _check_unset(document, path, spec, variant)
    _check_random(document, (*path, "random"), spec, variant)
    for role in ROLES:
        for name, buffer in getattr(variant, role).items():
            at = (*path, role, name, "order")
            if buffer.order and role not in ("outputs", "inout"):
                message = "only outputs and inout have `order`"
                raise document.fault(at, message, "remove it", at_key=True)
            _check_order(document, at, variant, name)


def _check_unset(document: Document, path: KeyPath, spec: Spec, variant: Variant) -> None:
    for name, text in variant.unset.items():
        here = (*path, "unset", name)
        known = {**variant.inputs, **variant.inout}
        check_known(document, here, name, known, "input or in-out")
        names = [*spec.names, *variant.scalars]
        check_comparison(document, here, text, names, real=True)


def _check_random(document: Document, path: KeyPath, spec: Spec, variant: Variant) -> None:
    random = variant.random
    if random is None:
        return
    check_known(document, (*path, "mask"), random.mask, variant.outputs, "output")
    mask = variant.outputs[random.mask]
    if DTYPES[mask.dtype].kind not in {"signed", "unsigned", "bool"} or mask.order:
        message = f"`{random.mask}` is not a mask"
        hint = "name an output of bools or integers, one for each element, without `order`"
        raise document.fault((*path, "mask"), message, hint)
    if isinstance(random.p, str):
        check_real(document, (*path, "p"), random.p, [*spec.names, *variant.scalars])
    elif not 0 < random.p < 1:
        message = f"p is {random.p:g}"
        raise document.fault(
            (*path, "p"), message, "must be above 0 and below 1: the share that is kept"
        )
    if random.seed:
        check_known(document, (*path, "seed"), random.seed, variant.scalars, "scalar")
        if "float" in variant.scalars[random.seed].dtype:
            raise document.fault((*path, "seed"), f"`{random.seed}` is not an integer")


def _check_order(document: Document, path: KeyPath, variant: Variant, name: str) -> None:
    outputs = {**variant.outputs, **variant.inout}
    order = outputs[name].order if name in outputs else ""
    if isinstance(order, str):
        return
    if order.beside:
        _check_beside(document, path, variant, name, order.beside)
        return
    shape = outputs[name].shape
    if not -len(shape) <= order.axis < len(shape):
        message = f"axis {order.axis} of {name}, which has {len(shape)} dimensions"
        raise document.fault((*path, "axis"), message, f"give one below {len(shape)}")
    if order.within:
        at = (*path, "within")
        check_known(document, at, order.within, [one for one in outputs if one != name], "output")
        offsets = outputs[order.within]
        if DTYPES[offsets.dtype].kind not in {"signed", "unsigned"} or len(offsets.shape) != 1:
            message = f"`{order.within}` is not a list of offsets"
            raise document.fault(at, message, "name an output of integers with one axis")


def _check_beside(
    document: Document, path: KeyPath, variant: Variant, name: str, beside: str
) -> None:
    outputs = {**variant.outputs, **variant.inout}
    shape = outputs[name].shape
    at = (*path, "with")
    check_known(document, at, beside, [one for one in outputs if one != name], "output")
    other = outputs[beside].order
    if not other or (isinstance(other, Order) and other.beside):
        hint = f"give {beside} `order: any`"
        raise document.fault(at, f"`{beside}` has no free order", hint)
    if document.given((*path, "axis")) or document.given((*path, "within")):
        raise document.fault(path, "`with` defines the whole order", "leave out the others")
    of = outputs[beside].shape
    axis = (other.axis if isinstance(other, Order) else -1) % len(of)
    if list(map(str, of[: axis + 1])) != list(map(str, shape[: axis + 1])):
        message = f"the shapes of `{name}` and `{beside}` differ up to axis {axis}"
        raise document.fault(at, message, "one element of one belongs to one of the other")
