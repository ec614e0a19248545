"""Cases of the shipped ops on rows, and float32 emulations of right kernels in several orders."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli import spec
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.spec import Draw
from tokitai_cli.core.numerics import round_to, rounded_bound
from tokitai_cli.oracles import references
from tokitai_cli.spec import inputs, plan
from tokitai_cli.spec.plan.selection import Selection

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Singles = NDArray[np.float32]

ORDERS = ("sequential", "random", "tree")
U = 2.0**-24


@functools.cache
def shipped(op: str) -> LoadedSpec:
    """Return a shipped spec."""
    return spec.load(spec.find(op))


def row_case(op: str, variant: str, profile: str, seed: int = 0, **shape: int) -> Case:
    """Return a case of a shipped spec."""
    selection = Selection(
        variants=(variant,),
        profiles=(profile,),
        seeds=(seed,),
        shapes={name: (value,) for name, value in shape.items()},
    )
    (case,) = plan.plan(shipped(op), selection).cases
    return case


def changed(case: Case, **fields: Any) -> Case:
    """Return the case with other fields of its variant."""
    variant = msgspec.structs.replace(case.variant, **fields)
    variants = {**case.loaded.spec.variants, case.variant_name: variant}
    whole = msgspec.structs.replace(case.loaded.spec, variants=variants)
    return msgspec.structs.replace(case, loaded=msgspec.structs.replace(case.loaded, spec=whole))


def redrawn(case: Case, **draws: Draw) -> Case:
    """Return the case with a profile that draws these arrays in another way."""
    given = case.loaded.spec.profiles[case.profile]
    profile = msgspec.structs.replace(given, inputs={**given.inputs, **draws})
    profiles = {**case.loaded.spec.profiles, case.profile: profile}
    whole = msgspec.structs.replace(case.loaded.spec, profiles=profiles)
    return msgspec.structs.replace(case, loaded=msgspec.structs.replace(case.loaded, spec=whole))


def in_order(case: Case, order: str) -> Case:
    """Return the case with the reduction that a kernel of this order may claim."""
    return case if order == "tree" else changed(case, reduction="any")


def arrays_of(case: Case) -> dict[str, Array]:
    """Return the drawn arrays, writable."""
    return {name: drawn.array.copy() for name, drawn in inputs.draw(case).items()}


def expected(case: Case, arrays: Arrays, output: str) -> Expectation:
    """Return what the oracle says of one output."""
    return references.expect(case, arrays)[output]


def error_of(expectation: Expectation) -> NDArray[np.float64]:
    """Return e, which every oracle on rows has."""
    assert expectation.error is not None
    return expectation.error


def ratios(values: Array, expectation: Expectation) -> NDArray[np.float64]:
    """Return |value - reference| / e in front of the last rounding, 0/0 being 0."""
    with np.errstate(all="ignore"):
        distance = np.abs(values.astype(np.float64) - expectation.reference)
        result = np.nan_to_num(distance / error_of(expectation), nan=0.0, posinf=np.inf)
    return np.asarray(result)


def rounded_ratios(values: Array, expectation: Expectation, dtype: str) -> NDArray[np.float64]:
    """Return |rounded value - reference| / F(e, reference), 0/0 being 0."""
    got = round_to(values.astype(np.float64), dtype).astype(np.float64)
    bound = rounded_bound(error_of(expectation), expectation.reference, FORMATS[dtype])
    with np.errstate(all="ignore"):
        result = np.abs(got - expectation.reference) / bound
    return np.asarray(np.nan_to_num(result, nan=0.0, posinf=np.inf))


class Emulation:
    """Float32 arithmetic of a right kernel: sums in `order`, exp and rsqrt off by up to 2 ulp."""

    def __init__(self, order: str, seed: int = 0, *, threads: int = 256) -> None:
        self.order, self.threads = order, threads
        self.random = np.random.Generator(np.random.PCG64(seed))

    def sum(self, terms: Singles) -> Singles:
        """Sum each row, [r, n] to [r, 1]."""
        if self.order == "tree":
            return self._tree(terms)
        if self.order == "random":
            terms = terms[:, self.random.permutation(terms.shape[1])]
        return np.cumsum(terms, axis=1, dtype=np.float32)[:, -1:]

    def _tree(self, terms: Singles) -> Singles:
        rows, width = terms.shape
        partial = np.zeros((rows, self.threads), dtype=np.float32)
        for start in range(0, width, self.threads):
            part = terms[:, start : start + self.threads]
            partial[:, : part.shape[1]] += part
        while partial.shape[1] > 1:
            half = partial.shape[1] // 2
            partial = partial[:, :half] + partial[:, half:]
        return partial

    def _off(self, exact: NDArray[np.float64], ulps: int) -> Singles:
        """Round to float32 and move by up to `ulps` in all, rounding included."""
        near = exact.astype(np.float32)
        moved = near.copy()
        with np.errstate(all="ignore"):
            for _ in range(ulps):
                step = self.random.integers(-1, 2, size=near.shape)
                there = np.nextafter(moved, np.where(step < 0, -np.inf, np.inf).astype(np.float32))
                moved = np.where(step == 0, moved, there)
            ulp = np.spacing(np.abs(near)).astype(np.float64)
            far = np.abs(moved.astype(np.float64) - exact) > ulps * ulp
        result: Singles = np.where(far | (exact == 0), near, moved)
        return result

    def exp(self, t: Singles) -> Singles:
        """Return exp within 2 ulp."""
        return self._off(np.exp(t.astype(np.float64)), 2)

    def rsqrt(self, x: Singles) -> Singles:
        """Return 1 / sqrt within 2 ulp."""
        return self._off(1.0 / np.sqrt(x.astype(np.float64)), 2)

    def softmax(self, arrays: Arrays) -> dict[str, Singles]:
        """Softmax of x."""
        x = arrays["x"].astype(np.float32)
        terms = self.exp(x - x.max(axis=1, keepdims=True))
        y: Singles = np.divide(terms, self.sum(terms), dtype=np.float32)
        return {"y": y}

    def softmax_gradient(self, arrays: Arrays) -> dict[str, Singles]:
        """Gradient of softmax."""
        g, s = (arrays[name].astype(np.float32) for name in ("g", "s"))
        return {"grad_x": s * (g - self.sum(g * s))}

    def layernorm(self, arrays: Arrays, eps: float = 1e-5) -> dict[str, Singles]:
        """Layer normalisation of x."""
        x, scale, shift = (arrays[name].astype(np.float32) for name in ("x", "gamma", "beta"))
        columns = np.float32(x.shape[1])
        mean = self.sum(x) / columns
        rstd = self.rsqrt(self.sum((x - mean) ** 2) / columns + np.float32(eps))
        y = (x - mean) * rstd * scale + shift
        return {"y": y, "mean": mean[:, 0], "rstd": rstd[:, 0]}

    def layernorm_gradient(self, arrays: Arrays) -> dict[str, Singles]:
        """Gradients of layer normalisation."""
        grad, x, scale = (arrays[name].astype(np.float32) for name in ("grad_y", "x", "gamma"))
        columns, rstd = np.float32(x.shape[1]), arrays["rstd"][:, None]
        xh, d = (x - arrays["mean"][:, None]) * rstd, grad * scale
        grad_x: Singles = columns * d - self.sum(d) - xh * self.sum(d * xh)
        grad_x *= rstd / columns
        return {
            "grad_x": grad_x,
            "grad_gamma": self.sum((xh * grad).T)[:, 0],
            "grad_beta": self.sum(grad.T)[:, 0],
        }

    def run(self, case: Case, arrays: Arrays) -> dict[str, Singles]:
        """Return the values of a case in front of the last rounding."""
        name = f"{case.loaded.spec.op}.{case.variant_name}"
        with np.errstate(all="ignore"):
            return {
                "softmax.fwd": self.softmax,
                "softmax.grad": self.softmax_gradient,
                "layernorm.fwd": self.layernorm,
                "layernorm.bwd": self.layernorm_gradient,
            }[name](arrays)
