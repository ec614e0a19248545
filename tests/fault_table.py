"""Wrong kernels and the verdicts that they must get, device by device.

On a GPU shared memory cannot be filled in front of a launch, blocks and waves run in an order that
nobody chooses, and the size of a wave is the hardware's: some faults may stay unseen there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# What a fault of `faults.hpp` is, in the words of the report.
WORDS = {
    "right": "no fault",
    "zeros": "output of zeros",
    "wrong-sign": "wrong sign",
    "rolled-row": "last row rolled by one column",
    "skipped-column": "last column never written",
    "zero-column": "last column zero",
    "halved": "half of the right value",
    "last-term": "last term of the sum dropped",
    "last-square": "last term of the second sum dropped",
    "no-sum": "sum left out",
    "no-projection": "term with xhat left out",
    "no-eps": "eps left out",
    "unbiased": "variance over cols - 1",
    "fixed-eps": "eps written into the kernel",
    "half-exponentials": "exponentials rounded to float16",
}
# A fault's words where they mean something of their own.
OWN_WORDS = {
    ("embedding", "fwd", "last-term"): "last query skipped",
    ("embedding", "bwd", "last-term"): "last query skipped",
    ("embedding", "bwd", "no-sum"): "last query of a row wins",
    ("softmax", "fwd", "no-sum"): "not divided by the sum",
    ("layernorm", "fwd", "no-sum"): "mean taken as 0",
    ("layernorm", "bwd", "no-sum"): "sum of d left out",
}
SHAPES: dict[str, dict[str, int]] = {
    "gemm-bw": {"m": 32, "n": 32, "k": 48},
    "embedding": {"queries": 96, "dim": 80, "vocab": 128},
    "softmax": {"rows": 8, "cols": 300},
    "layernorm": {"rows": 6, "cols": 65},
}

VERIFIED = ("verified",)
REFUTED = ("refuted",)
INCONCLUSIVE = ("inconclusive",)
CRASHED = ("crashed",)
UNSEEN = ("refuted", "verified")


@dataclass(frozen=True)
class Trial:
    """A kernel at one shape, and the verdict that each device may come to.

    `profiles` empty: all that the shipped variant has; the verdict is the run's. `options` are those
    of the command line.
    """

    fault: str
    op: str
    variant: str
    cpu: tuple[str, ...]
    cuda: tuple[str, ...]
    shape: Mapping[str, int] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def allowed(self, device: str) -> tuple[str, ...]:
        """Verdicts that `device` may come to."""
        return {"cpu": self.cpu, "cuda": self.cuda}[device]

    @property
    def name(self) -> str:
        """The trial, for the names of tests."""
        sizes = "-".join(f"{name}{value}" for name, value in self.shape.items())
        words = (self.op, self.variant, *self.profiles, sizes)
        options = [f"{name}{value}" for name, value in self.options.items()]
        return "-".join(word for word in (*words, *options) if word)


def _gemm() -> list[Trial]:
    fault = "terms behind the last whole tile of 256 dropped"
    sizes = {"m": 16, "k": 16}
    return [
        Trial(fault, "gemm-bw", "grad-a-tail", VERIFIED, VERIFIED, {**sizes, "n": 1024}),
        Trial(fault, "gemm-bw", "grad-a-tail", REFUTED, REFUTED, {**sizes, "n": 1152}),
        Trial("no fault", "gemm-bw", "grad-a-right", VERIFIED, VERIFIED, {**sizes, "n": 1152}),
        Trial("sum kept in float16", "gemm-bw", "grad-a-half-sum", REFUTED, REFUTED),
    ]


def _embedding() -> list[Trial]:
    # Half of the indices name one row.
    hot = {"queries": 8192, "dim": 2, "vocab": 35}
    once = {"queries": 96, "dim": 80, "vocab": 128}
    steps = "16-bit compare-and-swap, rounded at each step"
    plain = "load, add and store, not atomic"

    def trial(fault: str, variant: str, cpu: tuple[str, ...], *profiles: str, **more: Any) -> Trial:
        cuda = more.get("cuda", cpu)
        return Trial(fault, "embedding", variant, cpu, cuda, more.get("shape", hot), profiles)

    return [
        trial(steps, "bwd-half-steps", REFUTED, "hot-ones"),
        trial(steps, "bwd-half-steps", REFUTED, "hot-constant"),
        trial(steps, "bwd-half-steps", REFUTED, "hot"),
        trial(steps, "bwd-half-steps", VERIFIED, "unique", shape=once),
        trial(plain, "bwd-plain-update", UNSEEN, "hot", cuda=REFUTED),
        trial(f"{plain}: 256 threads load before one stores", "bwd-in-step", REFUTED, "hot"),
        trial("no fault", "bwd-right", VERIFIED, "hot", "hot-ones", "hot-constant"),
        trial("index outside the table clamped", "fwd-clamped", REFUTED, "out-of-range", shape=once),
        trial("index outside the table clamped", "bwd-clamped", REFUTED, "out-of-range", shape=once),
        trial("row of an index outside the table zeroed", "fwd-overwritten", REFUTED,
              "out-of-range", shape=once),
        trial("no fault", "fwd-right", VERIFIED, "out-of-range", shape=once),
    ]  # fmt: skip


def _softmax() -> list[Trial]:
    def trial(
        fault: str, variant: str, cpu: tuple[str, ...], rows: int, cols: int, *profiles: str,
        cuda: tuple[str, ...] = (),
    ) -> Trial:  # fmt: skip
        shape = {"rows": rows, "cols": cols}
        return Trial(fault, "softmax", variant, cpu, cuda or cpu, shape, profiles)

    flat, relative = "under abs 1e-2 alone", "under abs 1e-2 and rel 1e-2"
    half = "sum kept in float16, term by term"
    padding = "threads without a column take part with 0 in the place of -inf"
    return [
        trial(f"output of zeros, {flat}", "fwd-flat-zeros", INCONCLUSIVE, 4, 16384, "normal"),
        trial(f"output of zeros, {relative}", "fwd-relative-zeros", REFUTED, 4, 16384, "normal"),
        trial(f"no fault, {flat}", "fwd-flat-right", INCONCLUSIVE, 4, 16384, "normal"),
        trial("no fault", "fwd-right", VERIFIED, 4, 16384, "normal", "one-large"),
        trial(f"output of zeros, {flat}", "grad-flat-zeros", INCONCLUSIVE, 4, 32768, "narrow"),
        trial(half, "fwd-half-sum", REFUTED, 1, 4096, "equal"),
        trial(f"{half}, under abs 1e-3 alone", "fwd-flat-half-sum", INCONCLUSIVE, 1, 4096, "equal"),
        trial("no fault", "fwd-right", VERIFIED, 1, 4096),
        trial(padding, "fwd-padded", REFUTED, 1, 65, "minus-30"),
        trial(padding, "fwd-padded", REFUTED, 8, 65, "far-below-zero"),
        trial("no fault", "fwd-right", VERIFIED, 8, 65),
        trial("NaN skipped", "fwd-drops-nan", REFUTED, 8, 300, "nan-rows"),
        trial("9 of 64 rows zero", "fwd-nine-rows", REFUTED, 64, 600, "normal"),
        trial("columns behind the last whole vector of 4 not summed", "fwd-tail", VERIFIED, 8, 768),
        trial("columns behind the last whole vector of 4 not summed", "fwd-tail", REFUTED, 8, 769),
        trial("no fault", "fwd-right", VERIFIED, 8, 769),
        trial("maximum of a part of the row subtracted", "fwd-short-max", REFUTED, 8, 300),
        trial("maximum not subtracted", "fwd-no-shift", REFUTED, 8, 300),
        trial("half of the shared array that is used", "fwd-half-partial", CRASHED, 8, 300,
              cuda=(*UNSEEN, *CRASHED)),
    ]  # fmt: skip


def _layernorm() -> list[Trial]:
    def trial(
        fault: str, variant: str, cpu: tuple[str, ...], rows: int, cols: int, *profiles: str,
        cuda: tuple[str, ...] = (), **options: Any,
    ) -> Trial:  # fmt: skip
        shape = {"rows": rows, "cols": cols}
        return Trial(fault, "layernorm", variant, cpu, cuda or cpu, shape, profiles, options)

    one_pass = "variance as E[x^2] - E[x]^2"
    race = "no barrier between the uses of a shared array"
    means = ("mean-0", "mean-100", "mean-1000", "mean-10000")
    found = [
        trial(f"{one_pass}, float32 x", "single-one-pass", REFUTED if mean else VERIFIED, 64, 16,
              f"mean-{mean}")
        for mean in (0, 100, 1000, 10000)
    ]  # fmt: skip
    return [
        *found,
        trial("no fault, float32 x", "single-right", VERIFIED, 64, 16, *means),
        trial(one_pass, "fwd-one-pass", REFUTED, 5, 769, "large-mean"),
        trial("no fault", "fwd-right", VERIFIED, 5, 769),
        trial("no fault, Welford's updates", "fwd-welford-right", VERIFIED, 5, 769),
        trial("no fault, Welford's updates, claimed to be two passes", "fwd-two-pass-welford-right",
              REFUTED, 64, 300, "large-mean"),
        trial("Welford's updates, last column left out", "fwd-welford-last-term", REFUTED, 6, 300),
        trial("Welford's updates, unbiased variance", "fwd-welford-unbiased", REFUTED, 6, 300),
        trial("Welford's updates, merged without the distance of the means",
              "fwd-welford-no-merge", REFUTED, 6, 300),
        trial("eps written into the kernel", "fwd-eps-y-fixed-eps", REFUTED, 6, 65),
        trial("no fault", "fwd-eps-right", VERIFIED, 6, 65),
        trial(race, "fwd-no-barrier", REFUTED, 6, 300, "normal", cuda=UNSEEN, repeat=8),
        trial(race, "bwd-grad-x-no-barrier", REFUTED, 6, 300, "normal", cuda=UNSEEN, repeat=8),
        trial("no fault", "bwd-right", VERIFIED, 6, 65, repeat=8),
        trial("squares summed in float16", "fwd-half-sum", REFUTED, 6, 300, "large"),
        trial("mean and rstd rounded to float16", "bwd-grad-x-half-statistics", REFUTED, 6, 300,
              "normal"),
        trial("mean and rstd rounded to float16", "bwd-grad-x-half-statistics", REFUTED, 6, 300,
              "large-mean"),
        trial("column sums kept in float16", "bwd-grad-beta-half-sum", REFUTED, 3000, 8,
              "grad-ones"),
        trial("no fault", "bwd-right", VERIFIED, 3000, 8, "normal", "grad-ones"),
    ]  # fmt: skip


def _blocks() -> list[Trial]:
    def trial(
        fault: str, variant: str, cpu: tuple[str, ...], *profiles: str,
        cuda: tuple[str, ...] = (), shape: Mapping[str, int] | None = None, **options: Any,
    ) -> Trial:  # fmt: skip
        return Trial(fault, "blocks", variant, cpu, cuda or cpu, shape or {}, profiles, options)

    short = "offsets of the shuffles start at 16"
    bins = "shared bins never zeroed"
    past = "element behind the input read"
    unused = "element behind the input read, and not used"
    outside = "33,280 bytes behind an input of 8,192 read, and not used"
    return [
        trial(short, "wave-sums-short-shuffle", VERIFIED, "normal"),
        trial(short, "wave-sums-short-shuffle", REFUTED, "normal", cuda=VERIFIED, warp_size=64),
        trial("no fault", "wave-sums-right", VERIFIED, "normal"),
        trial("no fault", "wave-sums-right", VERIFIED, "normal", warp_size=64),
        trial("no barrier before a shared factor is overwritten, 4 rows a block",
              "scaled-rows-no-barrier", REFUTED, "normal", cuda=UNSEEN, repeat=8),
        trial("no fault", "scaled-rows-right", VERIFIED, "normal", repeat=8),
        trial("last store reaches into the next block's row", "paired-rows-into-next-row", REFUTED,
              "normal", cuda=UNSEEN, shape={"rows": 2}),
        trial("no fault", "paired-rows-right", VERIFIED, "normal", shape={"rows": 2}),
        trial(bins, "histogram-uncleared", REFUTED, "normal", cuda=UNSEEN),
        trial("no fault", "histogram-right", VERIFIED, "normal"),
        trial("minimum starts from what the output held", "least-unset", REFUTED, "normal",
              shape={"n": 64}),
        trial("no fault", "least-right", VERIFIED, "normal", shape={"n": 64}),
        trial("NaN dropped from a maximum", "row-max-drops-nan", REFUTED, "special"),
        trial("no fault", "row-max-right", VERIFIED, "normal", "special"),
        trial("column sums kept in float16", "column-sum-half-sum", REFUTED, "ones",
              shape={"rows": 3000}),
        trial("no fault", "column-sum-right", VERIFIED, "normal", "ones", shape={"rows": 3000}),
        trial(past, "differences-tail", REFUTED, "normal"),
        trial("no fault", "differences-right", VERIFIED, "normal"),
        trial(unused, "warmed-up-behind", VERIFIED, "normal"),
        trial(outside, "warmed-up-outside", ("crashed",), "normal", cuda=VERIFIED),
        trial("no fault", "warmed-up-right", VERIFIED, "normal"),
    ]  # fmt: skip


TRIALS = (*_gemm(), *_embedding(), *_softmax(), *_layernorm(), *_blocks())
