"""Drafts that start from a shipped op: its formula, shapes, draws, profiles and suites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tokitai_cli.core import resources
from tokitai_cli.core.errors import UsageError, near
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.model import (
    ArrayDraft,
    Flow,
    Guess,
    LaunchDraft,
    ParamDraft,
    ProfileDraft,
    ScalarDraft,
    SpecDraft,
    SuiteShape,
)
from tokitai_cli.spec.reader.gaps import GAP
from tokitai_cli.spec.reader.yaml_document import decode, parse, read_bytes

_WRITTEN = ["outputs", "inout"]
_ROLES = ["inputs", *_WRITTEN]
Named = dict[str, Any]


class TemplateOp:
    """A variant of a shipped op, as its spec says it. Raises UsageError for an unknown one.

    name: `op` for its first variant, or `op.variant`.
    """

    def __init__(self, name: str) -> None:
        op, _, variant = name.partition(".")
        file = resources.specs_dir() / f"{op}.yaml"
        known = sorted(one.stem for one in resources.specs_dir().glob("*.yaml"))
        if op not in known:
            hint = near(op, known)
            raise UsageError(f"--like: no op `{op}` ships with the tool", hint=hint)
        self.op: Named = parse(decode(read_bytes(file), file), file).root
        variants: Named = self.op["variants"]
        variant = variant or next(iter(variants))
        if variant not in variants:
            hint = near(variant, variants)
            raise UsageError(f"--like: {op} has no variant `{variant}`", hint=hint)
        self.variant: Named = variants[variant]
        self.name = f"{op}.{variant}"
        oracle = self.variant["oracle"]
        formula = oracle["formula"] if isinstance(oracle, dict) else oracle
        module, _, function = formula.partition(".")
        self.function = function.replace("-", "_")
        text = resources.formulas_dir() / f"{module.replace('-', '_')}.py"
        self.formula = text.read_text(encoding="utf-8")
        words = set(re.findall(r"\w+", str(self.variant)))
        self.params: Named = {n: one for n, one in self.op["params"].items() if n in words}

    def arrays(self, role: str) -> Named:
        """Arrays of a role by name."""
        found: Named = self.variant.get(role, {})
        return found


def _matched(ours: Sequence[Parameter], theirs: Named) -> dict[str, str]:
    """Our names to theirs: by name, by a name that begins as the other, then by position.

    Floats are matched with floats alone, but for bytes that an op takes for float8.
    """
    found: dict[str, str] = {}

    def free() -> list[str]:
        return [name for name in theirs if name not in found.values()]

    def alike(one: Parameter, name: str) -> bool:
        dtype = theirs[name]["dtype"]
        whole = bool(one.dtypes) and "float" not in one.dtypes[0]
        return dtype in one.dtypes or whole is ("float" not in dtype)

    rules: tuple[Callable[[str, str], bool], ...] = (
        lambda mine, other: mine.lower() == other.lower(),
        lambda mine, other: mine.lower().startswith(other) or other.startswith(mine.lower()),
        lambda mine, other: True,
    )
    for rule in rules:
        for one in ours:
            if one.name not in found:
                fits = [name for name in free() if rule(one.name, name) and alike(one, name)]
                found |= {one.name: fits[0]} if fits else {}
    return found


class _Match:
    """What of a kernel is what of the op.

    settings, arrays, sizes: our names to theirs.
    """

    def __init__(
        self,
        draft: SpecDraft,
        found: Sequence[Parameter],
        args: Sequence[Parameter],
        op: TemplateOp,
    ) -> None:
        self.op, self.found = op, {one.name: one for one in found}
        theirs: Named = op.variant.get("scalars", {})
        self.numbers = [
            one for one in found
            if one.name in draft.scalars or (one.name in draft.params and one.name in theirs)
        ]  # fmt: skip
        self.own_sizes = [name for name in draft.params if name not in theirs]
        self.settings = _matched(self.numbers, theirs)
        self.arrays: dict[str, str] = {}
        for roles in (["inputs"], _WRITTEN):
            mine = [
                one for one in found if (told := draft.arrays.get(one.name)) and told.role in roles
            ]
            other = {name: one for role in roles for name, one in op.arrays(role).items()}
            self.arrays |= _matched(mine, other)
        self.sizes = self._matched_sizes([one.name for one in args])
        self.function = draft.oracle.rpartition(":")[2]
        if re.search(rf"^def {self.function}\b", op.formula, re.MULTILINE):
            self.function += "_kernel"

    def _matched_sizes(self, args: Sequence[str]) -> dict[str, str]:
        passed = {str(one) for launch in self.op.variant["launches"] for one in launch["args"]}
        mine = [name for name in self.own_sizes if name in args]
        names = list(self.op.params)
        found = {name: name for name in mine if name in names}
        rest = [name for name in mine if name not in found]
        left = [name for name in names if name not in found.values()]
        given = [name for name in left if name in passed]
        return found | dict(zip(rest, given if len(rest) <= len(given) else left, strict=False))

    def renamed(self, value: Flow) -> Flow:
        """Expressions of our sizes in the op's."""
        if isinstance(value, Mapping):
            return {key: self.renamed(one) for key, one in value.items()}
        if isinstance(value, str):
            return re.sub(r"[A-Za-z_]\w*", lambda m: self.sizes.get(m[0], m[0]), value)
        return [*map(self.renamed, value)] if isinstance(value, Sequence) else value

    def ours(self, value: Flow) -> Flow:
        """A draw with our names of the arrays that it is drawn from."""
        back = self.back
        if isinstance(value, dict):
            return {key: back.get(one, one) if key == "of" else self.ours(one)
                    for key, one in value.items()}  # fmt: skip
        return [self.ours(one) for one in value] if isinstance(value, list) else value

    @property
    def back(self) -> dict[str, str]:
        """Their arrays to ours."""
        return {other: mine for mine, other in self.arrays.items()}


def like(
    draft: SpecDraft,
    name: str,
    leaves: Sequence[Parameter],
    args: Sequence[Parameter],
    op: TemplateOp,
) -> tuple[SpecDraft, str]:
    """The draft with what a shipped op has, and its formula; what has no counterpart there is a gap.

    name: the kernel's. leaves: its arrays and numbers, those of structs too. args: its arguments.
    """
    match = _Match(draft, leaves, args, op)
    arrays = {own: _array(match, own, one) for own, one in draft.arrays.items()}
    told = msgspec.structs.replace(
        draft,
        title=Guess(f"{name}: {op.op['title']}", f"as {op.name}"),
        formula=Guess(op.variant["formula"], f"as {op.name}"),
        params=_params(match),
        requires=Guess(()),
        oracle=f"formula.py:{match.function}",
        arrays=arrays,
        scalars={one.name: _scalar(match, draft, one) for one in match.numbers},
        structs={
            key: Guess(match.renamed(one.value), one.why) for key, one in draft.structs.items()
        },
        launch=_launch(match, draft.launch),
        profiles=Guess(_profiles(match), f"those of {op.name}"),
        suites=Guess(_suites(op), f"those of {op.name}"),
    )
    written = [own for own, one in arrays.items() if one.role in _WRITTEN]
    return told, _formula(match, name, written)


def _params(match: _Match) -> dict[str, ParamDraft]:
    found = {
        name: ParamDraft(**{"help": "", "why": "", **one}) for name, one in match.op.params.items()
    }
    gap = f"{GAP} its value; {match.op.name} has no such size"
    own = (name for name in match.own_sizes if name not in match.sizes)
    return found | {name: ParamDraft(1, match.found[name].text, gap) for name in own}


def _array(match: _Match, name: str, one: ArrayDraft) -> ArrayDraft:
    change, other = msgspec.structs.replace, match.arrays.get(name)
    if other is None:
        gap = f"{GAP} its shape; {match.op.name} has no such array"
        extents = tuple(match.renamed([str(extent) for extent in one.extents]))
        return change(one, extents=extents, why=gap, room="", does="")
    # What is handed on may be read or written, by the text alone.
    role = next(role for role in _ROLES if other in match.op.arrays(role))
    model = match.op.arrays(role)[other]
    kept = {key: model[key] for key in ("draw", "constant", "non_finite") if key in model}
    dtypes = match.found[name].dtypes
    own = [str(extent) for extent in match.renamed(list(one.strides))]
    other_way = len(own) == len(model["shape"]) and own != [str(n) for n in model["shape"]]
    said = f"; its indices say [{', '.join(own)}]" if other_way else ""
    return ArrayDraft(
        role=role,
        dtype=model["dtype"] if not dtypes or model["dtype"] in dtypes else dtypes[0],
        extents=tuple(model["shape"]),
        settings=match.ours(kept),
        why=f"as {other} of {match.op.name}{said}",
    )


def _scalar(match: _Match, draft: SpecDraft, one: Parameter) -> ScalarDraft:
    dtype = one.dtypes[0]
    if other := match.settings.get(one.name):
        value = match.op.variant["scalars"][other]["value"]
        return ScalarDraft(dtype, value, f"as {other} of {match.op.name}")
    own = draft.scalars.get(one.name)
    assert own is not None  # a size that the op has as a number is matched with it
    return msgspec.structs.replace(own, value=match.renamed(own.value))


def _launch(match: _Match, own: LaunchDraft) -> LaunchDraft:
    theirs, why = match.op.variant["launches"][0], f"as {match.op.name} is launched"
    grid, block = (
        Guess(theirs[key], why) if one.why else Guess(match.renamed(one.value))
        for key, one in (("grid", own.grid), ("block", own.block))
    )
    shared = own.shared and Guess(match.renamed(own.shared.value), own.shared.why)
    return msgspec.structs.replace(
        own, grid=grid, block=block, shared=shared, args=match.renamed(own.args)
    )


def _profiles(match: _Match) -> dict[str, ProfileDraft]:
    op, found = match.op, {}
    for name in op.variant.get("profiles") or list(op.op["profiles"]):
        told = dict(op.op["profiles"][name] or {})
        own = told.get("inputs", {}).items()
        inputs = {match.back[key]: match.ours(one) for key, one in own if key in match.back}
        found[name] = ProfileDraft(told.get("draw"), told.get("help", ""), inputs=Guess(inputs))
    return found


def _suites(op: TemplateOp) -> dict[str, list[SuiteShape]]:
    _, _, variant = op.name.partition(".")
    return {
        suite: [
            SuiteShape(
                {key: n for key, n in one.get("shape", {}).items() if key in op.params},
                one.get("why", ""),
                one.get("expect"),
            )
            for one in shapes
            if variant in one.get("variants", [variant])
        ]
        for suite, shapes in op.op["suites"].items()
    }


def _formula(match: _Match, name: str, written: Sequence[str]) -> str:
    """The op's formula, and a function that calls it by this kernel's names."""
    op = match.op
    lines = [f"# The formula of {op.name}.", op.formula.rstrip(), "", ""]
    lines.append(f"def {match.function}(params, inputs, scalars):")
    lines.append(f'    """{name}, by the formula of {op.name}."""')
    read = {**op.arrays("inputs"), **op.arrays("inout")}
    lines += _mapping(op, "arrays", "inputs", read, match.arrays)
    lines += _mapping(op, "numbers", "scalars", op.variant.get("scalars", {}), match.settings)
    lines += [f"    found = {op.function}(params, arrays, numbers)", "    return {"]
    for one in written:
        other = match.arrays.get(one)
        told = f'found["{other}"],' if other else f"None,  {GAP} {op.name} has no such output"
        lines.append(f'        "{one}": {told}')
    return "\n".join([*lines, "    }"]) + "\n"


def _mapping(
    op: TemplateOp, target: str, source: str, theirs: Iterable[str], matched: Mapping[str, str]
) -> list[str]:
    back = {other: mine for mine, other in matched.items()}
    rows = []
    for other in theirs:
        if mine := back.get(other):
            rows.append(f'        "{other}": {source}["{mine}"],')
        else:
            gap = f"{GAP} no argument of the kernel seems to be {other} of {op.name}"
            rows.append(f'        "{other}": None,  {gap}')
    return [f"    {target} = {{", *rows, "    }"] if rows else [f"    {target} = {{}}"]
