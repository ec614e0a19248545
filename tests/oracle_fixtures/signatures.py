"""Oracles of signatures.hip."""

import numpy as np


def product(params, inputs, scalars):
    """Exact products of 16-bit numbers; one rounding to float32."""
    result = inputs["x"].astype(np.float64) * scalars["a"]
    rounding = 2.0**-24 if inputs["x"].dtype == np.float32 else 0.0
    return {"y": {"reference": result, "error": rounding * np.abs(result)}}


def product_float64(params, inputs, scalars):
    """The product as a double-double: Dekker's splitting, Numer. Math. 18 (1971)."""

    def split(number):
        scaled = 134217729.0 * number
        high = scaled - (scaled - number)
        return high, number - high

    x, a = inputs["x"], scalars["a"]
    (x1, x2), (a1, a2) = split(x), split(a)
    result = x * a
    low = x2 * a2 - (((result - x1 * a1) - x2 * a1) - x1 * a2)
    return {"y": {"reference": result, "low": low, "error": np.zeros(result.shape)}}


def shifted(params, inputs, scalars):
    x = inputs["x"]
    return {"y": x + np.array(scalars["a"], dtype=x.dtype)}


def inverted(params, inputs, scalars):
    return {"y": inputs["x"] != scalars["invert"]}


def accumulate(params, inputs, scalars):
    total = inputs["total"].astype(np.float64) + inputs["x"]
    return {"total": {"reference": total, "error": 2.0**-24 * np.abs(total)}}


def total(params, inputs, scalars):
    return {"total": np.array([inputs["x"].sum(dtype=np.int32)])}


def reversed_blocks(params, inputs, scalars):
    return {"y": inputs["x"].reshape(-1, 64)[:, ::-1].reshape(-1)}


def once(params, inputs, scalars):
    return {"y": inputs["x"]}


def thrice(params, inputs, scalars):
    return {"y": np.int32(3) * inputs["x"]}


def scale(params, inputs, scalars):
    result = inputs["x"].astype(np.float64) * scalars["a"]
    return {"y": {"reference": result, "error": 2.0**-24 * np.abs(result)}}


def looked_up(params, inputs, scalars):
    table = inputs["coefficients"].astype(np.float64) + inputs["offsets"]
    result = table[np.arange(params["n"]) % 4]
    return {"y": {"reference": result, "error": 2.0**-24 * np.abs(result)}}


def kept_in_symbols(params, inputs, scalars):
    remainders = (params["n"] + np.arange(4)) % 4
    counted = inputs["counted"] + np.uint64(params["n"])
    rest = {"remainders": remainders.astype(np.int32), "counted": counted}
    return looked_up(params, inputs, scalars) | rest


def _two_sum(a, b):
    """a + b as a double-double: Knuth, TAOCP vol. 2, 4.2.2."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def sum_of_three(params, inputs, scalars):
    """Double-double, and the error of two additions: u (|a + b| + |sum|)."""
    first, rest = _two_sum(inputs["a"], inputs["b"])
    second, more = _two_sum(first, inputs["c"])
    high, low = _two_sum(second, rest + more)
    error = 2.0**-53 * np.abs(first) * (1 + 2.0**-50)
    return {"y": {"reference": high, "low": low, "error": error}}


def sum_of_three_plain(params, inputs, scalars):
    return {"y": inputs["a"] + inputs["b"] + inputs["c"]}


def sum_of_three_unnormalized(params, inputs, scalars):
    total = inputs["a"] + inputs["b"]
    return {"y": {"reference": total, "low": inputs["c"]}}
