"""Oracles that behave and oracles that do not, each called by a test."""

import os
import sys
import time

import numpy as np


def good(params, inputs, scalars):
    return {"y": np.full(params["n"], 2.0) * inputs["x"].astype(np.float64)}


def with_error(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    mask = x > 0
    return {"y": {"reference": x, "error": np.abs(x) * 2.0**-24, "may_be_unwritten": mask}}


def sided(params, inputs, scalars, reduction):
    x = inputs["x"].astype(np.float64)
    print(reduction)
    wrong = {"last-term-dropped": x - 1, "halved": x / 2}
    below, above = np.abs(x) * 0.25, np.abs(x)
    return {
        "y": {
            "reference": x,
            "error_below": below,
            "error_above": above,
            "may_be_nan": x > 0,
            "wrong": wrong,
        }
    }


def one_side(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    return {"y": {"reference": x, "error_below": np.abs(x)}}


def both_errors(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    error = np.abs(x)
    return {"y": {"reference": x, "error": error, "error_below": error, "error_above": error}}


def wrong_names(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    return {"y": {"reference": x, "wrong": {"Not a name": x}}}


def short_wrong(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    return {"y": {"reference": x, "wrong": {"short": x[:1]}}}


def choices(params, inputs, scalars):
    y = np.arange(params["n"])
    return {"y": {"reference": y, "allowed": np.stack([y + 1, y + 2]), "error": y * 0.5}}


def summed(params, inputs, scalars):
    x = inputs["x"].astype(np.float64)
    if not x[-1]:
        raise ValueError("zero is no input of mine")
    return {"y": np.full(params["n"], x.sum())}


def slow(params, inputs, scalars):
    time.sleep(4)
    return {"y": inputs["x"].astype(np.float64)}


def scaled(params, inputs, scalars):
    return {"y": inputs["x"].astype(np.float64) * scalars["alpha"] + scalars["count"]}


def prints(params, inputs, scalars):
    print("hello from the oracle")
    print("and on stderr", file=sys.stderr)
    return {"y": inputs["x"].astype(np.float64)}


def changes_inputs(params, inputs, scalars):
    inputs["x"][...] = 0
    return {"y": inputs["x"].astype(np.float64)}


def integers(params, inputs, scalars):
    return {"y": np.arange(params["n"], dtype=np.int64)}


def too_large_integers(params, inputs, scalars):
    return {"y": np.full(params["n"], 300)}


def error_of_bools(params, inputs, scalars):
    n = params["n"]
    return {"y": {"reference": np.zeros(n, dtype=bool), "error": np.zeros(n)}}


def raises(params, inputs, scalars):
    print("before the fault")
    values = [1, 2, 3]
    return {"y": values[params["n"]]}


def leaves(params, inputs, scalars):
    sys.exit(3)


def exits(params, inputs, scalars):
    os._exit(0)


def aborts(params, inputs, scalars):
    os.abort()


def hangs(params, inputs, scalars):
    time.sleep(600)


def returns_list(params, inputs, scalars):
    return [1.0]


def returns_scalar(params, inputs, scalars):
    return {"y": 1.0}


def returns_text(params, inputs, scalars):
    return {"y": np.array(["a"] * params["n"])}


def returns_objects(params, inputs, scalars):
    return {"y": np.array([None] * params["n"])}


def returns_complex(params, inputs, scalars):
    return {"y": np.ones(params["n"], dtype=np.complex128)}


def returns_half(params, inputs, scalars):
    return {"y": inputs["x"]}


def wrong_shape(params, inputs, scalars):
    return {"y": np.zeros((params["n"], 1))}


def nothing(params, inputs, scalars):
    return {}


def wrong_name(params, inputs, scalars):
    return {"y": np.zeros(params["n"]), "z": np.zeros(params["n"])}


def no_reference(params, inputs, scalars):
    return {"y": {"error": np.zeros(params["n"])}}


def unknown_part(params, inputs, scalars):
    return {"y": {"reference": np.zeros(params["n"]), "tolerance": 1.0}}


def part_of_formulas(params, inputs, scalars):
    return {"y": {"reference": np.zeros(params["n"]), "changes": np.zeros(params["n"])}}


def negative_error(params, inputs, scalars):
    return {"y": {"reference": np.zeros(params["n"]), "error": np.full(params["n"], -1.0)}}


def nan_error(params, inputs, scalars):
    return {"y": {"reference": np.zeros(params["n"]), "error": np.full(params["n"], np.nan)}}


def narrow_error(params, inputs, scalars):
    error = np.zeros(params["n"], dtype=np.float32)
    return {"y": {"reference": np.zeros(params["n"]), "error": error}}


not_a_function = 3
