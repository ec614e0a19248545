import numpy as np


def plain(params, inputs, scalars):
    return {"grad_a": inputs["grad_c"].astype(np.float64) @ inputs["b"].astype(np.float64).T}


def with_error(params, inputs, scalars):
    c, b = inputs["grad_c"].astype(np.float64), inputs["b"].astype(np.float64)
    error = 2.0**-24 * c.shape[1] * (np.abs(c) @ np.abs(b).T)
    return {"grad_a": {"reference": c @ b.T, "error": error}}


def with_wrong(params, inputs, scalars):
    c, b = inputs["grad_c"].astype(np.float64), inputs["b"].astype(np.float64)
    wrong = {"halved": c @ b.T / 2, "last-term-dropped": c[:, :-1] @ b[:, :-1].T}
    return {"grad_a": {"reference": c @ b.T, "wrong": wrong}}
