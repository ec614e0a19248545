"""Lookup in an embedding table, and the gradient of the table."""

import numpy as np


def fwd(params, inputs, scalars):
    """Rows of the table that the indices name; a row of the output that none names stays as it was."""
    indices, weight, output = inputs["indices"], inputs["weight"], inputs["output"]
    named = (indices >= 0) & (indices < params["vocab"])
    rows = weight[np.where(named, indices, 0)] if params["vocab"] else output
    return {"output": np.where(named[:, None], rows, output)}


def bwd(params, inputs, scalars):
    """Each row of the table gets the sum of the rows of grad_output whose index names it."""
    indices, grad = inputs["indices"], inputs["grad_output"]
    named = (indices >= 0) & (indices < params["vocab"])
    sums = np.zeros_like(grad, shape=(params["vocab"], params["dim"]))
    np.add.at(sums, indices[named], grad[named])
    return {"grad_weight": sums}
