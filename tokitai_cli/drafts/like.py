"""Drafts that start from a shipped op: its formula, shapes, draws, profiles and suites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import yaml

from tokitai_cli.core import resources
from tokitai_cli.core.errors import UsageError, near
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.launch_writer import DraftSubject
from tokitai_cli.drafts.writer import Writer
from tokitai_cli.spec.reader.gaps import GAP, GUESS
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


def _flow(value: Any) -> str:
    """As YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


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


class LikeWriter(Writer):
    """Texts of a draft with what a shipped op has; what has no counterpart there is a gap."""

    def __init__(self, subject: DraftSubject, like: TemplateOp) -> None:
        super().__init__(subject)
        self.like = like
        settings: Named = like.variant.get("scalars", {})
        self.sizes = [one for one in self.sizes if one.name not in settings]
        self.settings = _matched(self._numbers(), settings)
        self.arrays: dict[str, str] = {}
        for roles in (["inputs"], _WRITTEN):
            mine = [one for one in self.parameters if self.roles.get(one.name) in roles]
            theirs = {name: one for role in roles for name, one in like.arrays(role).items()}
            self.arrays |= _matched(mine, theirs)
        for (
            name,
            other,
        ) in self.arrays.items():  # what is handed on may be either, by the text alone
            self.roles[name] = next(role for role in _ROLES if other in like.arrays(role))
        self.renamed = self._sizes_of_the_op()
        if re.search(rf"^def {self.function}\b", like.formula, re.MULTILINE):
            self.function += "_kernel"

    def _sizes_of_the_op(self) -> dict[str, str]:
        passed = {str(one) for launch in self.like.variant["launches"] for one in launch["args"]}
        direct = {one.name for one in self.leaves.args}
        mine = [one for one in self.sizes if one.name in direct]
        names = list(self.like.params)
        found = {one.name: one.name for one in mine if one.name in names}
        rest = [one.name for one in mine if one.name not in found]
        left = [name for name in names if name not in found.values()]
        given = [name for name in left if name in passed]
        return found | dict(zip(rest, given if len(rest) <= len(given) else left, strict=False))

    def _named(self, name: str) -> str:
        return self.renamed.get(name, name)

    @property
    def total(self) -> str:
        """As the draft's own, of the op's sizes."""
        return " * ".join(list(self.like.params)[:3])

    def _own_sizes(self) -> list[Parameter]:
        return [one for one in self.sizes if one.name not in self.renamed]

    def _read_comments(self, source: str) -> None:
        pass  # the op has its own shapes

    def _add_rows(self) -> None:
        pass  # the op has its own

    def _room(self, array: str, extents: list[str]) -> list[str]:
        return []  # the op has its own shapes

    def filled(self) -> dict[str, int]:
        """None: the op has its own limits."""
        return {}

    def _title(self) -> str:
        title = f"{self.kernel.name}: {self.like.op['title']}"
        return f"{_flow(title)}  {GUESS} as {self.like.name}"

    def _told(self) -> list[str]:
        return [f"    formula: {_flow(self.like.variant['formula'])}  {GUESS} as {self.like.name}"]

    def _requires(self) -> list[str]:
        return []  # the op has its own sizes

    def _params(self) -> list[str]:
        rows = [f"  {name}: {_flow(one)}" for name, one in self.like.params.items()]
        for one in self._own_sizes():
            said = f"{GAP} its value; {self.like.name} has no such size"
            rows.append(f'  {one.name}: {{default: 1, help: "{one.text}"}}  {said}')
        return rows

    def _array(self, one: Parameter) -> str:
        other = self.arrays.get(one.name)
        if other is None:
            said = f"{GAP} its shape; {self.like.name} has no such array"
            return super()._array(one).partition("  # ")[0] + f"  {said}"
        model = self.like.arrays(self.roles[one.name])[other]
        kept = {
            key: model[key] for key in ("shape", "draw", "constant", "non_finite") if key in model
        }
        known = not one.dtypes or model["dtype"] in one.dtypes
        dtype = model["dtype"] if known else one.dtypes[0]
        told = _flow({"dtype": dtype, **self._ours(kept)})
        own = [self._of_the_op(extent) for extent in self.text.shape(one.name)]
        other_way = len(own) == len(model["shape"]) and own != [str(n) for n in model["shape"]]
        said = f"; its indices say [{', '.join(own)}]" if other_way else ""
        return f"      {one.name}: {told}  {GUESS} as {other} of {self.like.name}{said}"

    def _of_the_op(self, text: str) -> str:
        """An expression of the kernel's sizes in the op's."""
        return re.sub(r"[A-Za-z_]\w*", lambda m: self._named(m.group()), text)

    def _ours(self, value: Any) -> Any:
        """A draw with our names of the arrays that it is drawn from."""
        back = {other: mine for mine, other in self.arrays.items()}
        if isinstance(value, dict):
            return {key: back.get(one, one) if key == "of" else self._ours(one)
                    for key, one in value.items()}  # fmt: skip
        return [self._ours(one) for one in value] if isinstance(value, list) else value

    def _scalars(self) -> list[str]:
        rows = super()._scalars()
        numbers = self._numbers()
        for index, one in enumerate(numbers, 1):
            if other := self.settings.get(one.name):
                value = _flow(self.like.variant["scalars"][other]["value"])
                told = f"{{dtype: {one.dtypes[0]}, value: {value}}}"
                rows[index] = f"      {one.name}: {told}  {GUESS} as {other} of {self.like.name}"
        return rows

    def _extents(self, key: str, otherwise: list[str]) -> tuple[list[str], str]:
        found, guess = super()._extents(key, otherwise)
        if not guess:
            return found, ""
        launch = self.like.variant["launches"][0]
        return [str(one) for one in launch[key]], f"  {GUESS} as {self.like.name} is launched"

    def _expression(self, text: str, named: bool = True) -> str:
        return self._of_the_op(super()._expression(text, named))

    def _profiles(self) -> list[str]:
        wanted = self.like.variant.get("profiles") or list(self.like.op["profiles"])
        back = {other: mine for mine, other in self.arrays.items()}
        lines = [f"profiles:  {GUESS} those of {self.like.name}"]
        for name in wanted:
            profile = dict(self.like.op["profiles"][name] or {})
            own = profile.pop("inputs", {})
            own = {back[other]: self._ours(one) for other, one in own.items() if other in back}
            lines.append(f"  {name}: {_flow(profile | ({'inputs': own} if own else {}))}")
        return lines

    def _suites(self) -> list[str]:
        lines = [f"suites:  {GUESS} those of {self.like.name}"]
        _, _, variant = self.like.name.partition(".")
        for suite, shapes in self.like.op["suites"].items():
            lines.append(f"  {suite}:")
            for shape in shapes:
                if variant in shape.get("variants", [variant]):
                    kept = {k: one for k, one in shape.items() if k not in ("variants", "profiles")}
                    sizes = shape.get("shape", {}).items()
                    kept["shape"] = {k: n for k, n in sizes if k in self.like.params}
                    lines.append(f"    - {_flow(kept)}")
        return lines

    def formula(self) -> str:
        """The op's formula, and a function that calls it by this kernel's names."""
        like, name = self.like, self.like.name
        lines = [f"# The formula of {name}.", like.formula.rstrip(), "", ""]
        lines.append(f"def {self.function}(params, inputs, scalars):")
        lines.append(f'    """{self.kernel.name}, by the formula of {name}."""')
        read = {**like.arrays("inputs"), **like.arrays("inout")}
        lines += self._mapping("arrays", "inputs", read, self.arrays)
        settings = like.variant.get("scalars", {})
        lines += self._mapping("numbers", "scalars", settings, self.settings)
        lines += [f"    found = {like.function}(params, arrays, numbers)", "    return {"]
        for one in self.parameters:
            if self.roles.get(one.name) in {"outputs", "inout"}:
                other = self.arrays.get(one.name)
                told = f'found["{other}"],' if other else f"None,  {GAP} {name} has no such output"
                lines.append(f'        "{one.name}": {told}')
        return "\n".join([*lines, "    }"]) + "\n"

    def _mapping(
        self, target: str, source: str, theirs: Iterable[str], matched: Named
    ) -> list[str]:
        back = {other: mine for mine, other in matched.items()}
        rows = []
        for other in theirs:
            if mine := back.get(other):
                rows.append(f'        "{other}": {source}["{mine}"],')
            else:
                gap = f"{GAP} no argument of the kernel seems to be {other} of {self.like.name}"
                rows.append(f'        "{other}": None,  {gap}')
        return [f"    {target} = {{", *rows, "    }"] if rows else [f"    {target} = {{}}"]
