"""What a spec file says, after it was read: one frozen struct per mapping of the file.

The structs are the schema: the reader converts YAML into them strictly (unknown keys are errors)
and the JSON Schema is generated from them. Symbolic sizes and scalar values are text in the
language of `tokitai_cli.core.expressions`.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tokitai_cli.core.dtypes import DTypeName
from tokitai_cli.core.model.metrics import MetricName

SPEC_SCHEMA = "tokitai/spec/v1"
# File beside a draft that holds its JSON Schema, for editors.
SCHEMA_FILE = f"{SPEC_SCHEMA.replace('/', '-')}.schema.json"

Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]
Variable = Annotated[
    str, Meta(pattern=r"^([A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*)?$", max_length=200)
]
MOST_OF_NAME = 64
Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9]*([-_.][a-z0-9]+)*$", max_length=MOST_OF_NAME)]
Expression = int | Annotated[str, Meta(min_length=1, max_length=200)]
Real = float | Annotated[str, Meta(min_length=1, max_length=200)]
Scalar = bool | int | float | str
# Lanes of a warp of the device, in expressions of launches and macros and in kernels' names.
WARP_SIZE = "warp_size"
PropertyName = Literal[
    "row-sum", "row-mean", "row-variance", "sum-conserved",
    "shift-invariance", "permutation-equivariance",
]  # fmt: skip
Init = Literal["sentinel", "zero", "zero-once"]


class Strict(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """Base of every mapping in a spec file."""


class Param(Strict, frozen=True, kw_only=True):
    """An integer parameter of the op; becomes the command-line option `--NAME`."""

    default: int
    min: int = 1
    max: int | None = None
    multiple_of: int = 1
    help: str = ""


class Draw(Strict, frozen=True, kw_only=True):
    """How one array is filled: a generator and its settings (see docs/spec/inputs.md, profiles).

    `kind` is a name, or `file.py:function`. `axis` is the axis that the op reduces over, for the kinds
    that need it; without it the first axis whose size is in no output's shape. `sign` is for
    log-uniform, "random" without it. `at` are places along the last axis for one-large and placed,
    `of` the array that row-mean and row-rstd follow, `end` what offsets rise to, `parts` those of a mix.
    """

    kind: str
    lo: Real | None = None
    hi: Real | None = None
    value: Real | None = None
    below: Expression | None = None
    end: Expression | None = None
    scale: Real | None = None
    axis: int | None = None
    sign: Literal["random", "positive", "negative"] | None = None
    at: list[Expression] | None = None
    of: Identifier | None = None
    parts: list[Part] | None = None


class Part(Strict, frozen=True, kw_only=True):
    """Elements of a mix: how they are drawn, and how many of them there are beside those of others."""

    draw: Draw | str
    share: Annotated[float, Meta(gt=0)]


class Profile(Strict, frozen=True, kw_only=True):
    """`draw` fills every input that has no draw of its own; `inputs` overrides by input name."""

    draw: Draw | str | None = None
    inputs: dict[Identifier, Draw | str] = {}
    help: str = ""


class Constant(Strict, frozen=True, kw_only=True):
    """A right output that is `value` throughout, at shapes of which the comparison `when` holds.

    `when` empty: at every shape.
    """

    value: bool | int | float
    when: str = ""


class Order(Strict, frozen=True, kw_only=True):
    """That slices of an output along `axis` may stand in each other's places, in each row by itself.

    within: the output of offsets whose segments they stay in. with: the output whose order is theirs.
    """

    axis: int = -1
    within: Identifier | Literal[""] = ""
    beside: Identifier | Literal[""] = msgspec.field(name="with", default="")


class Buffer(Strict, frozen=True, kw_only=True):
    """An array argument. `shape` holds expressions of the params; row-major and contiguous.

    `init` says what outputs and workspaces hold before each repetition: a sentinel that no
    correct kernel leaves behind, or zero; a workspace of `zero-once` is zeroed in front of the first
    only. `scratch` says in words what a workspace holds that nothing judges. `draw` is an input's own
    generator. `non_finite` says in words where an output is NaN or infinite; the oracle's masks judge
    it. `constant` declares that an output has one value throughout, so that it is no sign of weak
    checks that zeros are right. `rounding` says how an output narrower than float32 is rounded, if that
    is judged. `symbol` names the `__device__` variable that an output or in-out is,
    in place of an argument. `order` says that an output is right up to an order.
    """

    dtype: DTypeName
    shape: list[Expression]
    init: Init = "sentinel"
    scratch: str = ""
    draw: Draw | str | None = None
    non_finite: str = ""
    constant: Constant | None = None
    rounding: Literal["", "nearest-even"] = ""
    order: Order | Literal["any", ""] = ""
    symbol: Variable = ""


Address = Literal["clamp", "border", "wrap", "mirror"]


class Texture(Strict, frozen=True, kw_only=True):
    """A texture over an array, whose last extent counts the channels where there are several.

    The other extents are those along z, y and x. address: of every axis, or of each from x on. read:
    whole numbers as floats from -1 or 0 to 1, or elements as they are. reference: what the source calls
    a texture at namespace scope, where that is not the texture's own name.
    """

    array: Identifier
    channels: Literal[1, 2, 4] = 1
    filter: Literal["point", "linear"] = "point"
    address: Address | Annotated[list[Address], Meta(min_length=1, max_length=3)] = "clamp"
    normalized: bool = False
    read: Literal["element", "normalized-float"] = "element"
    reference: Variable = ""


class ScalarArg(Strict, frozen=True, kw_only=True):
    """A scalar argument with a dtype of its own; `value` is a literal or an expression of params."""

    dtype: DTypeName
    value: Scalar


class Loop(Strict, frozen=True, kw_only=True):
    """Steps in which a host starts kernels: `name` counts them from 0 in expressions of the launch."""

    name: Identifier
    count: Expression


class Launch(Strict, frozen=True, kw_only=True):
    """One kernel launch.

    `args` name buffers, scalars, structs, lists or params, or are integer expressions. Launches next to
    each other with the same `loop` are made in turn, step by step; of a list the first is outermost.
    """

    kernel: Annotated[str, Meta(min_length=1, max_length=1000)]
    loop: Loop | list[Loop] = []
    grid: list[Expression]
    block: list[Expression]
    shared: Expression = 0
    args: list[Expression]

    def kernel_at(self, warp_size: int) -> str:
        """The kernel's name on a device with such warps."""
        return re.sub(rf"\b{WARP_SIZE}\b", str(warp_size), self.kernel)

    @property
    def loops(self) -> list[Loop]:
        """The loops around it, the outermost first."""
        return self.loop if isinstance(self.loop, list) else [self.loop]


# What a field of a struct holds: an array or scalar by name, an integer; a struct, or several of them.
# Three structs deep, since a type that stands in itself has no schema.
Innermost = dict[Identifier, Expression | list[Expression]]
Fields = dict[Identifier, Expression | list[Expression | Innermost] | Innermost]
Field = Expression | list[Expression | Fields] | Fields


class Check(Strict, frozen=True, kw_only=True):
    """One comparison of an output: refuted where `metric` exceeds `limit`.

    `abs` and `rel` are the tolerances of allclose. `output` empty means every output, `profiles` empty
    every profile.
    """

    metric: MetricName
    limit: float = 1.0
    abs: float | None = None
    rel: float | None = None
    against: Literal["reference", "replay"] = "reference"
    output: str = ""
    profiles: list[str] = []
    why: str = ""

    @property
    def tolerances(self) -> str:
        """abs 0.001, rel 0.01; empty for a check that has one limit."""
        return "" if self.abs is None else f"abs {self.abs:g}, rel {self.rel:g}"


class Property(Strict, frozen=True, kw_only=True):
    """An identity that the oracle knows of an output, with a limit that it derives.

    `output` empty means the output that the oracle states it of; `profiles` empty every profile.
    """

    name: PropertyName
    output: str = ""
    profiles: list[str] = []
    why: str = ""


class Work(Strict, frozen=True, kw_only=True):
    """Bytes that a launch sequence moves and operations that it does; 0 where not told."""

    bytes: Expression = 0
    flops: Expression = 0


class Reduction(Strict, frozen=True, kw_only=True):
    """Order of additions that the kernel claims: `tree` gives h, the longest path of additions.

    `outputs` gives it for outputs whose sums are of another length than `tree` says. `welford`: the
    additions are updates of mean and variance together, of single elements and then of sets in pairs.
    """

    tree: Expression
    welford: bool = False
    outputs: dict[Identifier, Expression] = {}


PrecisionName = Literal[
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tanh", "sinh", "cosh",
    "erf", "arctan", "cbrt", "sqrt", "rsqrt", "divide", "power",
]  # fmt: skip


MatrixArchitecture = Literal[
    "volta", "turing", "ampere", "ada", "hopper", "blackwell", "cdna1", "cdna2", "cdna3"
]


class MatrixUnit(Strict, frozen=True, kw_only=True):
    """That sums are those of a matrix unit: NVIDIA's, one that is called WMMA, or CDNA's.

    architecture: whose unit it is; without it the sums may lose what those of any may.
    """

    unit: Literal["tensor-core", "wmma", "mfma"]
    architecture: MatrixArchitecture | Literal[""] = ""


class FormulaOracle(Strict, frozen=True, kw_only=True):
    """A formula in plain numpy, `file.py:function`, of which error bounds and wrong outputs follow.

    precision: error of a function in ulp, where the kernel's is another than HIP and CUDA document.
    accumulate: dtype in which the kernel keeps its sums, or the unit that makes them. sampled_from:
    multiplications from which a formula that is one product of matrices is judged on a block, and on
    whole numbers by random vectors.
    """

    formula: str
    precision: dict[PrecisionName, Annotated[float, Meta(ge=0, le=2**20)]] = {}
    accumulate: Literal["float16", "bfloat16", "float32", "float32-truncated"] | MatrixUnit = (
        "float32"
    )
    sampled_from: Annotated[int, Meta(ge=1)] = 2**39


class Random(Strict, frozen=True, kw_only=True):
    """An output that the kernel draws by chance: a mask whose elements are 1 with the probability `p`.

    seed: the scalar that another mask follows from.
    """

    mask: Identifier
    p: Real
    seed: Identifier | Literal[""] = ""


class Variant(Strict, frozen=True, kw_only=True):
    """One kernel or sequence of kernels with its contract.

    unset: inputs and in-outs that need not hold anything where a comparison holds, of params, sizes
    and scalars: kernels get NaN there, and the oracle zeros.
    """

    source: str
    launches: Annotated[list[Launch], Meta(min_length=1)]
    given_oracle: str | FormulaOracle = msgspec.field(name="oracle")
    checks: Annotated[list[Check], Meta(min_length=1)]
    title: str = ""
    lowering: str = ""
    backend: str = ""
    formula: str = ""
    defines: dict[Identifier, Expression] = {}
    include: list[str] = []
    flags: list[str] = []
    requires: list[str] = []
    inputs: dict[Identifier, Buffer] = {}
    outputs: dict[Identifier, Buffer] = {}
    inout: dict[Identifier, Buffer] = {}
    workspaces: dict[Identifier, Buffer] = {}
    symbols: dict[Identifier, Buffer] = {}
    scalars: dict[Identifier, ScalarArg] = {}
    structs: dict[Identifier, dict[Identifier, Field] | list[dict[Identifier, Field]]] = {}
    lists: dict[Identifier, list[Identifier] | Identifier] = {}
    textures: dict[Identifier, Texture] = {}
    replay: str = ""
    reduction: Reduction | Literal["any", "none", "welford"] = "any"
    deterministic: bool = True
    flush_to_zero: bool = False
    properties: list[Property] = []
    profiles: list[str] = []
    unset: dict[Identifier, str] = {}
    random: Random | None = None
    non_claims: list[str] = []
    work: Work = Work()

    @property
    def oracle(self) -> str:
        """Built-in name, or `file.py:function`."""
        return (
            self.given_oracle if isinstance(self.given_oracle, str) else self.given_oracle.formula
        )

    @property
    def own_oracle(self) -> bool:
        """Whether the oracle is a function beside the spec."""
        return ":" in self.oracle

    @property
    def by_formula(self) -> FormulaOracle | None:
        """The oracle, where it is a formula: so are all built-in ones."""
        given = self.given_oracle
        if isinstance(given, str):
            return None if ":" in given else FormulaOracle(formula=given)
        return given


class SuiteShape(Strict, frozen=True, kw_only=True):
    """A shape of a suite: values of params that differ from the defaults."""

    shape: dict[Identifier, int] = {}
    why: str = ""
    variants: list[str] = []
    profiles: list[str] = []
    expect: Literal["elements", "empty"] = "elements"


class KnownBug(Strict, frozen=True, kw_only=True):
    """A failure that is known: the case is still run and told, but expected to fail."""

    reason: str
    variant: str = ""
    device: str = ""
    arch: str = ""
    profile: str = ""
    shape: dict[Identifier, int] = {}


class EquivalentChange(Strict, frozen=True, kw_only=True):
    """A change of a kernel's source that `tokitai mutate` makes and that changes no result.

    line, to: the source line that is changed and what becomes of it, white space apart.
    """

    line: str
    to: str
    reason: Annotated[str, Meta(min_length=1)]

    def means(self, before: str, after: str) -> bool:
        """Whether it is the change of the line `before` to `after`."""
        return (self.line.split(), self.to.split()) == (before.split(), after.split())


class Spec(Strict, frozen=True, kw_only=True):
    """A whole spec file.

    sizes: integers that follow from params, and from sizes above them, by a name of their own.
    """

    schema: Literal["tokitai/spec/v1"]
    op: Name
    title: str
    params: dict[Identifier, Param]
    variants: Annotated[dict[Name, Variant], Meta(min_length=1)]
    profiles: Annotated[dict[Name, Profile], Meta(min_length=1)]
    summary: str = ""
    sizes: dict[Identifier, Expression] = {}
    suites: dict[Name, list[SuiteShape]] = {}
    known_bugs: list[KnownBug] = []
    equivalent_changes: list[EquivalentChange] = []
    non_claims: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Names that expressions of sizes may have: params and what is derived from them."""
        return (*self.params, *self.sizes)
