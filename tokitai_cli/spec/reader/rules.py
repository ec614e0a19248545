"""What a spec must fulfil beyond its structure: params, profiles, suites and known bugs."""

from __future__ import annotations

from collections.abc import Mapping

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.device import TRAITS
from tokitai_cli.core.model.options import RESERVED_NAMES
from tokitai_cli.core.model.sizes import sizes_at
from tokitai_cli.core.model.spec import WARP_SIZE, Param, Spec, SuiteShape, Variant
from tokitai_cli.spec.reader.document import Document, KeyPath
from tokitai_cli.spec.reader.draw_rules import check_draw
from tokitai_cli.spec.reader.symbols import check_all_known, check_expression, check_known
from tokitai_cli.spec.reader.variant_rules import check_variant

# Options that an op's parameters stand beside, and words that options are likely to use one day.
RESERVED = RESERVED_NAMES | {
    "cache", "config", "debug", "devices", "dry_run", "fail_fast", "formats", "jobs", "keep_going",
    "no_cache", "no_color", "oracle", "profiles", "replay", "report", "sanitize", "schema", "seeds",
    "shape", "shard", "spec", "sweep", "threads", "variants", "verbose", "verify", "version",
}  # fmt: skip


def check(document: Document, spec: Spec, *, judged: bool = True) -> None:
    """Raise SpecError at the first thing in a well-formed spec that cannot be meant.

    judged: the outputs are to be, so that there must be some.
    """
    if spec.op != spec.op.strip():
        raise document.fault(("op",), "a line break in the name", "remove it")
    for name, param in spec.params.items():
        _check_param(document, name, param)
    _check_sizes(document, spec)
    _check_profiles(document, spec)
    for variant_name, variant in spec.variants.items():
        check_variant(document, ("variants", variant_name), spec, variant)
        if judged and not variant.outputs and not variant.inout:
            message = "no outputs: there is nothing to check"
            hint = "add `outputs:`; `tokitai sanitize` runs it without"
            raise document.fault(("variants", variant_name), message, hint)
    if not spec.suites and document.given(("suites",)):
        raise document.fault(("suites",), "no suite", "name one, or omit the key")
    for suite, shapes in spec.suites.items():
        if not shapes:
            raise document.fault(("suites", suite), "a suite without shapes")
        for index, shape in enumerate(shapes):
            _check_suite_shape(document, ("suites", suite, index), spec, shape)
    _check_known_bugs(document, spec)


def _check_param(document: Document, name: str, param: Param) -> None:
    path: KeyPath = ("params", name)
    if name.lower() in RESERVED:
        hint = f"choose another name, such as {name[0]} or {name}_count"
        raise document.fault(path, f"`{name}` is an option of the tool", hint, at_key=True)
    _check_word(document, path, name)
    for key in ("default", "min", "max", "multiple_of"):
        value = getattr(param, key)
        if value is not None and abs(value) > expressions.MAX_VALUE:
            raise document.fault((*path, key), f"{value} is 2^63 or more")
    if param.min < 0:
        raise document.fault((*path, "min"), f"{param.min} is negative", "params count from 0")
    if param.multiple_of < 1:
        raise document.fault((*path, "multiple_of"), f"{param.multiple_of} is not positive")
    fault = param_fault(name, param, param.default)
    if fault:
        raise document.fault((*path, "default"), fault)


def _check_word(document: Document, path: KeyPath, name: str) -> None:
    if name in (*expressions.FUNCTIONS, *expressions.KEYWORDS, WARP_SIZE):
        hint = f"choose another name, such as {name}_value"
        raise document.fault(path, f"`{name}` is a word of expressions", hint, at_key=True)


def _check_sizes(document: Document, spec: Spec) -> None:
    """Raise SpecError for a size that is named as something else, or follows from none above it."""
    known = list(spec.params)
    for name, text in spec.sizes.items():
        path: KeyPath = ("sizes", name)
        _check_word(document, path, name)
        if name in spec.params:
            message = f"`{name}` is already the name of a param"
            raise document.fault(path, message, "rename one", at_key=True)
        check_expression(document, path, text, known)
        known.append(name)


def param_fault(name: str, param: Param, value: int) -> str:
    """Say what is wrong with a param's value, or return an empty text."""
    if value < param.min:
        return f"{name} = {value} is below its min {param.min}"
    if param.max is not None and value > param.max:
        return f"{name} = {value} is above its max {param.max}"
    if value % param.multiple_of:
        return f"{name} = {value} is not a multiple of {param.multiple_of}"
    return ""


def _check_profiles(document: Document, spec: Spec) -> None:
    inputs: dict[str, str] = {}
    for variant in spec.variants.values():
        for buffers in (variant.inputs, variant.inout, variant.symbols):
            inputs |= dict.fromkeys(buffers, "")
    for name, profile in spec.profiles.items():
        path: KeyPath = ("profiles", name)
        if profile.draw is not None:
            check_draw(document, (*path, "draw"), profile.draw, spec.names)
        for buffer, draw in profile.inputs.items():
            here = (*path, "inputs", buffer)
            check_known(document, here, buffer, inputs, "input")
            check_draw(document, here, draw, spec.names)


def _check_suite_shape(document: Document, path: KeyPath, spec: Spec, shape: SuiteShape) -> None:
    _check_shape(document, (*path, "shape"), spec, shape.shape)
    check_all_known(document, (*path, "variants"), shape.variants, spec.variants, "variant")
    check_all_known(document, (*path, "profiles"), shape.profiles, spec.profiles, "profile")
    empty = shape.expect == "empty"
    for name, value in shape.shape.items():
        fault = param_fault(name, spec.params[name], value)
        if fault and not (empty and value >= 0):
            hint = "" if value else "for a shape without elements, write `expect: empty`"
            raise document.fault((*path, "shape", name), fault, hint)
    values = {name: param.default for name, param in spec.params.items()} | shape.shape
    names = shape.variants or list(spec.variants)
    faults = [_requirement_fault(spec, spec.variants[name], values) for name in names]
    if all(faults):
        message = f"no variant takes this shape: {names[0]} requires {faults[0]}"
        raise document.fault((*path, "shape"), message, "change the shape, or name other variants")


def _requirement_fault(spec: Spec, variant: Variant, values: Mapping[str, int]) -> str:
    for requirement in variant.requires:
        try:
            if not expressions.holds(requirement, sizes_at(spec, values)):
                return requirement
        except SpecError as error:
            return f"{requirement}: {error.message}"
    return ""


def _check_shape(document: Document, path: KeyPath, spec: Spec, shape: Mapping[str, int]) -> None:
    for name in shape:
        check_known(document, (*path, name), name, spec.params, "param")


def _check_known_bugs(document: Document, spec: Spec) -> None:
    for index, bug in enumerate(spec.known_bugs):
        path: KeyPath = ("known_bugs", index)
        if not bug.reason.strip():
            raise document.fault((*path, "reason"), "an empty reason", "say what is known")
        for key, name, known in (
            ("variant", bug.variant, spec.variants),
            ("profile", bug.profile, spec.profiles),
            ("device", bug.device, TRAITS),
        ):
            if name:
                check_known(document, (*path, key), name, known, key)
        _check_shape(document, (*path, "shape"), spec, bug.shape)
