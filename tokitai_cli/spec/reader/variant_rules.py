"""What a variant must fulfil beyond its structure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from tokitai_cli.core import flags, resources
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.model.buffers import draw_of, drawn_buffers
from tokitai_cli.core.model.draws import KINDS
from tokitai_cli.core.model.metrics import METRICS, named
from tokitai_cli.core.model.spec import WARP_SIZE, Buffer, Check, ScalarArg, Spec, Variant
from tokitai_cli.spec.reader.document import Document, KeyPath
from tokitai_cli.spec.reader.draw_rules import check_draw, check_dtype
from tokitai_cli.spec.reader.freedom_rules import check_freedom
from tokitai_cli.spec.reader.launch_rules import ROLES, buffers_of, check_launches
from tokitai_cli.spec.reader.symbols import (
    check_all_known,
    check_comparison,
    check_expression,
    check_function,
    check_known,
)
from tokitai_cli.spec.reader.texture_rules import check_textures

MAX_DIMENSIONS = 8
_YES_NO = {"yes": "true", "on": "true", "no": "false", "off": "false"}


def check_variant(document: Document, path: KeyPath, spec: Spec, variant: Variant) -> None:
    """Raise SpecError at the first thing in a variant that cannot be meant."""
    _check_source(document, path, variant)
    _check_unique(document, path, spec, variant)
    for name, (role, buffer) in buffers_of(variant).items():
        _check_buffer(document, (*path, role, name), spec, role, buffer)
    for name, scalar in variant.scalars.items():
        _check_scalar(document, (*path, "scalars", name), scalar)
    for index, requirement in enumerate(variant.requires):
        check_comparison(document, (*path, "requires", index), requirement, spec.names)
    for name, count in (("bytes", variant.work.bytes), ("flops", variant.work.flops)):
        check_expression(document, (*path, "work", name), count, spec.params)
    _check_build(document, path, spec, variant)
    _check_oracle(document, (*path, "oracle"), variant)
    if variant.replay:
        check_function(document, (*path, "replay"), variant.replay)
    if not isinstance(variant.reduction, str):
        tree = (*path, "reduction", "tree")
        check_expression(document, tree, variant.reduction.tree, spec.names)
        for name, steps in variant.reduction.outputs.items():
            here = (*path, "reduction", "outputs", name)
            check_known(document, here, name, _outputs(variant), "output")
            check_expression(document, here, steps, spec.names)
    check_textures(document, path, variant)
    check_launches(document, path, spec, variant)
    check_all_known(document, (*path, "profiles"), variant.profiles, spec.profiles, "profile")
    _check_drawn(document, path, spec, variant)
    check_freedom(document, path, spec, variant)
    for index, check in enumerate(variant.checks):
        _check_check(document, (*path, "checks", index), spec, variant, check)
    _check_all_judged(document, path, spec, variant)
    _check_properties(document, path, spec, variant)


def _check_oracle(document: Document, path: KeyPath, variant: Variant) -> None:
    is_name = isinstance(variant.given_oracle, str)
    check_function(document, path if is_name else (*path, "formula"), variant.oracle)


def _check_source(document: Document, path: KeyPath, variant: Variant) -> None:
    file = resources.file_of(document.file.parent, variant.source)
    if not resources.is_file(file):
        what = "is a folder" if resources.is_folder(file) else "no such file"
        hint = "the path is relative to the spec's folder"
        raise document.fault((*path, "source"), f"{what}: {file}", hint)
    if is_machine_code(file):
        given: list[KeyPath] = [
            (key,)
            for key in ("defines", "flags", "include", "symbols", "textures", "structs")
            if getattr(variant, key)
        ]
        for role in ("outputs", "inout"):
            named = getattr(variant, role).items()
            given += [(role, name, "symbol") for name, buffer in named if buffer.symbol]
        for key in given:
            message = f"`{variant.source}` is machine code, which has no `{key[-1]}` in a spec"
            hint = "remove it: nothing is compiled, and addresses are known for arguments only"
            raise document.fault((*path, *key), message, hint, at_key=True)


def _check_unique(document: Document, path: KeyPath, spec: Spec, variant: Variant) -> None:
    seen = dict.fromkeys(spec.params, "a param") | dict.fromkeys(spec.sizes, "a size")
    for role in (*ROLES, "scalars", "structs", "lists", "textures"):
        for name in getattr(variant, role):
            if role == "structs" and not document.given((*path, role, name)):
                continue  # a texture, as the harness has it
            if name in seen:
                message = f"`{name}` is already the name of {seen[name]}"
                raise document.fault((*path, role, name), message, "rename one", at_key=True)
            seen[name] = f"one of {role}"
    held = {name: f"one of symbols, {name}" for name in variant.symbols}
    for role in ("outputs", "inout"):
        for name, buffer in getattr(variant, role).items():
            if buffer.symbol in held:
                message = f"the variable `{buffer.symbol}` is {held[buffer.symbol]} already"
                at = (*path, role, name, "symbol")
                raise document.fault(at, message, "give each variable one array")
            held |= {buffer.symbol: f"one of {role}, {name}"} if buffer.symbol else {}


def _check_buffer(document: Document, path: KeyPath, spec: Spec, role: str, buffer: Buffer) -> None:
    if not 1 <= len(buffer.shape) <= MAX_DIMENSIONS:
        message = f"{len(buffer.shape)} dimensions, an array has 1 to {MAX_DIMENSIONS}"
        raise document.fault((*path, "shape"), message, "write [1] for a single number")
    for index, extent in enumerate(buffer.shape):
        check_expression(document, (*path, "shape", index), extent, spec.names)
    drawn = role in ("inputs", "inout", "symbols")
    if document.given((*path, "draw")) and not drawn:
        message = "only inputs, inout and symbols have `draw`"
        raise document.fault((*path, "draw"), message, "remove it", at_key=True)
    if document.given((*path, "init")) and role not in ("outputs", "workspaces"):
        message = "only outputs and workspaces have `init`"
        raise document.fault((*path, "init"), message, "remove it", at_key=True)
    if buffer.init == "zero-once" and role != "workspaces":
        message = "only workspaces can be zeroed once"
        raise document.fault((*path, "init"), message, "write `init: zero`, or make it a workspace")
    _check_words(document, path, role, buffer)
    if buffer.symbol and role not in ("outputs", "inout"):
        message = "only outputs and inout have `symbol`; a kernel reads those of `symbols` by name"
        raise document.fault((*path, "symbol"), message, "remove it", at_key=True)
    if buffer.constant is not None:
        _check_constant(document, (*path, "constant"), spec, role, buffer)
    if buffer.draw is not None:
        check_draw(document, (*path, "draw"), buffer.draw, spec.names)


def _check_constant(
    document: Document, path: KeyPath, spec: Spec, role: str, buffer: Buffer
) -> None:
    assert buffer.constant is not None
    if role not in ("outputs", "inout"):
        message = "only outputs and inout have `constant`"
        raise document.fault(path, message, "remove it", at_key=True)
    value = buffer.constant.value
    _check_value(document, (*path, "value"), value, buffer.dtype, "an output")
    if not math.isfinite(value):
        raise document.fault(
            (*path, "value"), f"{value} is not a constant", "write a finite number"
        )
    if buffer.constant.when:
        check_comparison(document, (*path, "when"), buffer.constant.when, spec.names)


def _check_words(document: Document, path: KeyPath, role: str, buffer: Buffer) -> None:
    floats = role in ("outputs", "inout") and "float" in buffer.dtype
    narrow = floats and FORMATS[buffer.dtype].precision < FORMATS["float32"].precision
    for key, has, who, hint in (
        ("scratch", role == "workspaces", "workspaces", "describe what the workspace holds"),
        ("non_finite", floats, "outputs and inout of floats",
         "describe where a correct kernel returns NaN and infinities"),
        ("rounding", narrow, "outputs and inout of floats narrower than float32",
         "write nearest-even"),
    ):  # fmt: skip
        at = (*path, key)
        if document.given(at) and not has:
            raise document.fault(at, f"only {who} have `{key}`", "remove it", at_key=True)
        if document.given(at) and not getattr(buffer, key).strip():
            raise document.fault(at, "an empty text", hint)


def _check_scalar(document: Document, path: KeyPath, scalar: ScalarArg) -> None:
    at = (*path, "value")
    value, dtype = scalar.value, scalar.dtype
    if isinstance(value, str):
        if dtype == "bool" and value.lower() in _YES_NO:
            raise document.fault(at, f"`{value}` for a bool", f"write {_YES_NO[value.lower()]}")
        return  # with the launches, whose loops it may name
    _check_value(document, at, value, dtype, "a scalar")


def _check_value(document: Document, at: KeyPath, value: float, dtype: str, what: str) -> None:
    """Raise SpecError where a literal is none of the dtype's."""
    if isinstance(value, bool) != (dtype == "bool"):
        hint = "write true or false" if dtype == "bool" else "write a number"
        raise document.fault(at, f"{str(value).lower()} for {what} of {dtype}", hint)
    if "float" in dtype:
        return
    if isinstance(value, float):
        hint = f"write {int(value)}" if value.is_integer() else "write an integer"
        raise document.fault(at, f"{value} for {what} of {dtype}", hint)
    if dtype != "bool":
        bits = int(dtype.lstrip("uint"))
        low, high = (0, 2**bits) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        if not low <= value < high:
            raise document.fault(at, f"{value} does not fit {dtype}")


def _check_build(document: Document, path: KeyPath, spec: Spec, variant: Variant) -> None:
    for name, value in variant.defines.items():
        here = (*path, "defines", name)
        if not re.fullmatch(flags.MACRO, name):
            message = f"`{name}` cannot be a define"
            raise document.fault(here, message, flags.MACRO_RULE, at_key=True)
        check_expression(document, here, value, {*spec.names, WARP_SIZE})
    for index, entry in enumerate(variant.include):
        if Path(entry).is_absolute() or flags.fault(f"-I{entry}")[0]:
            hint = (
                "write a folder or a header, relative to the spec file, without spaces and braces"
            )
            raise document.fault((*path, "include", index), f"{entry!r} cannot be included", hint)
    for index, flag in enumerate(variant.flags):
        message, hint = flags.fault(flag)
        if message:
            raise document.fault((*path, "flags", index), message, hint)


def _check_drawn(document: Document, path: KeyPath, spec: Spec, variant: Variant) -> None:
    for name, buffer in drawn_buffers(variant).items():
        role = buffers_of(variant)[name][0]
        for profile in variant.profiles or spec.profiles:
            draw = draw_of(spec, variant, profile, name)
            own = ("profiles", profile, "inputs", name)
            for at in (own, (*path, role, name, "draw"), ("profiles", profile, "draw")):
                if document.given(at):
                    check_dtype(document, at, draw, buffer.dtype)
                    if draw.of is not None:
                        known = [one for one in drawn_buffers(variant) if one != name]
                        check_known(document, (*at, "of"), draw.of, known, "array")
                    break
            else:
                if profile not in KINDS or KINDS[profile].needs[0]:
                    message = f"profile `{profile}` does not say how `{name}` is drawn"
                    hint = f"give the profile `draw:` or `inputs: {{{name}: ...}}`"
                    raise document.fault((*path, role, name), message, hint, at_key=True)
                check_dtype(document, ("profiles", profile), draw, buffer.dtype)


def _outputs(variant: Variant) -> Mapping[str, Buffer]:
    return {**variant.outputs, **variant.inout}


def _check_check(
    document: Document, path: KeyPath, spec: Spec, variant: Variant, check: Check
) -> None:
    outputs = _outputs(variant)
    metric = METRICS[check.metric]
    _check_limits(document, path, check)
    if check.output:
        check_known(document, (*path, "output"), check.output, outputs, "output")
    check_all_known(document, (*path, "profiles"), check.profiles, spec.profiles, "profile")
    if check.against == "replay":
        if not variant.replay and variant.by_formula is None:
            hint = "add `replay:` to the variant, or write against: reference"
            raise document.fault((*path, "against"), "the variant has no replay", hint)
        if not metric.replay:
            message = f"`{check.metric}` is defined against the reference only"
            raise document.fault((*path, "against"), message, "use exact, ulp, abs or rel")
    for name in [check.output] if check.output else outputs:
        dtype = outputs[name].dtype
        if "float" in dtype or (metric.integers and (dtype != "bool" or not metric.limited)):
            continue
        message = f"`{check.metric}` on `{name}` of {dtype}"
        known = "exact" if dtype == "bool" else ", ".join(named(integers=True))
        raise document.fault((*path, "metric"), message, f"write one of those it has: {known}")


def _check_limits(document: Document, path: KeyPath, check: Check) -> None:
    """Raise SpecError where limit and tolerances are not those of the metric, or no numbers."""
    metric = METRICS[check.metric]
    if not metric.limited and document.given((*path, "limit")) and check.limit != 0:
        message = f"`{check.metric}` has no limit"
        raise document.fault((*path, "limit"), message, "remove it", at_key=True)
    if metric.tolerances and document.given((*path, "limit")):
        hint = "write `abs` and `rel` instead"
        raise document.fault((*path, "limit"), f"`{check.metric}` has no limit", hint, at_key=True)
    for key in ("limit", "abs", "rel"):
        value = getattr(check, key)
        if value is None and metric.tolerances:
            hint = "write abs: A and rel: R, for errors up to A + R |reference|"
            raise document.fault(path, f"`{check.metric}` needs `{key}`", hint)
        if value is not None and not (math.isfinite(value) and value >= 0):
            message = f"{value} is not a limit"
            raise document.fault((*path, key), message, "write a finite number, 0 or more")
        if key != "limit" and value is not None and not metric.tolerances:
            message = f"`{check.metric}` has no `{key}`"
            hint = f"write limit: {value:g}, or metric: allclose"
            raise document.fault((*path, key), message, hint, at_key=True)


def _check_properties(document: Document, path: KeyPath, spec: Spec, variant: Variant) -> None:
    seen = set()
    for index, asked in enumerate(variant.properties):
        here = (*path, "properties", index)
        if asked.output:
            check_known(document, (*here, "output"), asked.output, _outputs(variant), "output")
        check_all_known(document, (*here, "profiles"), asked.profiles, spec.profiles, "profile")
        if asked.name in seen:
            message = f"`{asked.name}` is listed twice"
            raise document.fault((*here, "name"), message, "list its profiles in one entry")
        seen.add(asked.name)


def _check_all_judged(document: Document, path: KeyPath, spec: Spec, variant: Variant) -> None:
    for name in _outputs(variant):
        for profile in variant.profiles or spec.profiles:
            judged = any(
                METRICS[check.metric].gating
                and check.output in ("", name)
                and (not check.profiles or profile in check.profiles)
                for check in variant.checks
            )
            if not judged:
                message = f"no check judges output `{name}` on profile `{profile}`"
                hint = "add one of " + ", ".join(named(gating=True))
                raise document.fault((*path, "checks"), message, hint)
