"""A draft as the text of spec.yaml: the only place that knows how one is written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping

from tokitai_cli.core.model.spec import SCHEMA_FILE, SPEC_SCHEMA
from tokitai_cli.drafts.model import (
    ArrayDraft,
    Flow,
    Guess,
    LaunchDraft,
    ParamDraft,
    ProfileDraft,
    SpecDraft,
    SuiteShape,
)
from tokitai_cli.spec.reader.gaps import GAP, GUESS
from tokitai_cli.spec.reader.plain import SurpriseError, plain


def flow(value: Flow) -> str:
    """Data as YAML on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {flow(one)}' for key, one in value.items())}}}"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
        return f"{value:.17g}" if float(f"{value:g}") != value else f"{value:g}"
    return f"[{', '.join(map(flow, value))}]" if isinstance(value, Iterable) else str(value)


def quoted(text: str) -> str:
    """As YAML, in quotes where it is no plain word."""
    if text.isdigit() or (
        re.fullmatch(r"[A-Za-z_](?:(?:[\w. -]|:(?=\w))*[\w.])?", text) and _plainly(text)
    ):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _plainly(text: str) -> bool:
    try:
        return plain(text) == text
    except SurpriseError:
        return False


def marked(text: str, why: str) -> str:
    """A line with what is guessed of it behind; `why` may be a gap of its own, with its mark."""
    mark = "" if why.startswith(GAP) else f"{GUESS} "
    return f"{text}  {mark}{why}" if why else text


def spec_text(draft: SpecDraft) -> str:
    """Text of spec.yaml."""
    return "\n".join(_lines(draft)) + "\n"


def _lines(draft: SpecDraft) -> Iterator[str]:
    yield f"# yaml-language-server: $schema={SCHEMA_FILE}"
    yield f"schema: {SPEC_SCHEMA}"
    yield f"op: {quoted(draft.op)}"
    yield marked(f"title: {_text(draft.title.value)}", draft.title.why)
    yield f"summary: {draft.summary}"
    yield "params:" if draft.params else "params: {}"
    yield from (_param(name, one) for name, one in draft.params.items())
    yield from ("variants:", "  main:")
    yield from _optional("formula", draft.formula)
    yield f"    source: {quoted(draft.source)}"
    yield from _optional("requires", draft.requires)
    yield from _optional("include", Guess(draft.include))
    yield from _optional("flags", draft.flags)
    for role in ("inputs", "outputs", "inout", "symbols", "workspaces"):
        mine = [(name, one) for name, one in draft.arrays.items() if one.role == role]
        yield from [f"    {role}:"] * bool(mine)
        yield from (_array(name, one) for name, one in mine)
    yield from ["    scalars:"] * bool(draft.scalars)
    for name, number in draft.scalars.items():
        told = flow({"dtype": number.dtype, "value": number.value})
        yield marked(f"      {name}: {told}", number.why)
    yield from ["    structs:"] * bool(draft.structs)
    for name, fields in draft.structs.items():
        yield marked(f"      {name}: {flow(fields.value)}", fields.why)
    yield from ["    lists:"] * bool(draft.lists)
    yield from (f"      {name}: {flow(one)}" for name, one in draft.lists.items())
    yield from ["    textures:"] * bool(draft.textures)
    for name, texture in draft.textures.items():
        yield marked(f"      {name}: {flow(texture.value)}", texture.why)
    yield from _launch(draft.launch)
    yield from [marked("    deterministic: false", draft.unordered)] * bool(draft.unordered)
    oracle = {"formula": draft.oracle, "accumulate": draft.accumulate}
    yield f"    oracle: {flow({key: one for key, one in oracle.items() if one})}"
    yield "    checks:"
    yield from (f"      - {flow(one)}" for one in draft.checks)
    yield from ["    non_claims:"] * bool(draft.non_claims)
    yield from (marked(f"      - {quoted(one.value)}", one.why) for one in draft.non_claims)
    yield marked("profiles:", draft.profiles.why)
    for name, profile in draft.profiles.value.items():
        yield from _profile(name, profile)
    yield from [marked("suites:", draft.suites.why)] * bool(draft.suites.value)
    for name, shapes in draft.suites.value.items():
        yield f"  {name}:"
        yield from map(_shape, shapes)


def _optional(key: str, told: Guess[Flow]) -> list[str]:
    return [marked(f"    {key}: {flow(told.value)}", told.why)] if told.value else []


def _param(name: str, one: ParamDraft) -> str:
    keys = ("default", "multiple_of", "min", "max")
    kept = {key: value for key in keys if (value := getattr(one, key)) is not None}
    told = f", help: {_text(one.help)}" if one.help else ""
    return marked(f"  {name}: {flow(kept)[:-1]}{told}}}", one.why)


def _text(words: str) -> str:
    """Words, which are in quotes whatever they are."""
    told = quoted(words)
    return told if told[:1] == '"' else f'"{told}"'


def _array(name: str, one: ArrayDraft) -> str:
    told: dict[str, Flow] = {"dtype": one.dtype, "shape": one.shape, **one.settings}
    if one.symbol:
        told["symbol"] = one.symbol
    strides = f", where its strides say [{', '.join(one.strides)}]" if one.strides else ""
    room = f" (large enough for what its indices {one.room}{strides})" if one.room else ""
    return marked(f"      {name}: {flow(told)}", one.why + room + one.does)


def _launch(launch: LaunchDraft) -> Iterator[str]:
    yield "    launches:"
    yield marked(f"      - kernel: {quoted(launch.kernel.value)}", launch.kernel.why)
    yield marked(f"        grid: {flow(launch.grid.value)}", launch.grid.why)
    yield marked(f"        block: {flow(launch.block.value)}", launch.block.why)
    if launch.shared is not None:
        shared, why = launch.shared.value, launch.shared.why
        if launch.shared_room:
            why = f"large enough for every index; the host has {shared}"
            shared = f"{shared} + {launch.shared_room}"
        yield marked(f"        shared: {quoted(shared)}", why)
    yield f"        args: {flow(launch.args)}"


def _profile(name: str, one: ProfileDraft) -> Iterator[str]:
    whole = one.draw is not None or one.help or one.inputs.value
    yield marked(f"  {name}:" if whole else f"  {name}: {{}}", one.why)
    yield from [f"    draw: {flow(one.draw)}"] * (one.draw is not None)
    yield from [f"    help: {_text(one.help)}"] * bool(one.help)
    if one.inputs.value:
        yield marked(f"    inputs: {flow(one.inputs.value)}", one.inputs.why)


def _shape(one: SuiteShape) -> str:
    shows = quoted(one.shows) if re.search(r"[,:#]", one.shows) else one.shows
    told = [f"shape: {flow(one.sizes)}", *[f"why: {shows}"] * bool(shows)]
    told += [f"expect: {flow(one.expect)}"] * (one.expect is not None)
    return f"    - {{{', '.join(told)}}}"
