"""Oracles of field_cases.hip."""

import numpy as np

U32 = 2.0**-24


def rounded(reference):
    """Reference with the error of one rounding to float32."""
    return {"y": {"reference": reference, "error": U32 * np.abs(reference)}}


def softmax(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": e / e.sum(axis=1, keepdims=True)}


def doubled(params, inputs, scalars):
    return rounded(2.0 * inputs["x"].astype(np.float64))


def same(params, inputs, scalars):
    return {"y": inputs["x"].astype(np.float64)}


def column_sum(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    return {"y": {"reference": x.sum(axis=0), "error": len(x) * U32 * np.abs(x).sum(axis=0)}}


def column_mean(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    return {"y": {"reference": x.mean(axis=0), "error": len(x) * U32 * np.abs(x).mean(axis=0)}}


def row_max(params, inputs, scalars):
    reference = inputs["x"].astype(np.float64).max(axis=1)
    return {"y": {"reference": reference, "error": np.zeros(reference.shape)}}


def multiply_add(params, inputs, scalars):
    """Either order: one rounding of the product where it is not fused, and one of the sum."""
    square = inputs["a"].astype(np.float64) ** 2
    total = square + inputs["c"]
    error = U32 * (square + np.abs(total)) * (1 + 2.0**-20)
    return {"y": {"reference": total, "error": error}}


def gather(params, inputs, scalars):
    return {"y": inputs["table"][inputs["rows_read"]].astype(np.float64)}
