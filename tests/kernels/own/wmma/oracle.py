"""c = 2 a b + c, with a and b as they lie in memory."""

import numpy as np


def _answer(inputs, a, b, unit):
    a, b, c = (one.astype(np.float64) for one in (a, b, inputs["c"]))
    terms = 2 * np.abs(a) @ np.abs(b) + np.abs(c)
    return {"c": {"reference": 2 * a @ b + c, "error": unit * 32 * terms}}


def rows_columns(params, inputs, scalars):
    return _answer(inputs, inputs["a"], inputs["b"].T, 2.0**-24)


def exact(params, inputs, scalars):
    a, b, c = (inputs[name].astype(np.int64) for name in "abc")
    return {"c": {"reference": (2 * a @ b.T + c).astype(np.int32)}}


def narrow(params, inputs, scalars):
    return _answer(inputs, inputs["a"].T, inputs["b"], 2.0**-11)


def rows(params, inputs, scalars):
    return _answer(inputs, inputs["a"], inputs["b"], 2.0**-24)


def truncated(params, inputs, scalars):
    def told(x):
        return (x.astype(np.float32).view(np.uint32) & ~np.uint32(0x1FFF)).view(np.float32)

    return _answer(inputs, told(inputs["a"]).T, told(inputs["b"]).T, 2.0**-24)
