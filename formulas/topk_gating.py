"""Gating of a mixture of experts."""

import numpy as np


def fwd(params, inputs, scalars):
    """The k largest logits of each token, the lower expert first among equals, and their softmax."""
    logits, experts = inputs["logits"], np.arange(params["experts"])
    left = np.maximum(logits, -1e5)  # a masked one, of -inf, comes before those that are taken
    values, chosen = [], []
    for _ in range(params["k"]):
        index = left.argmax(axis=-1)
        values.append(logits[np.arange(params["tokens"]), index])
        chosen.append(index)
        left = np.where(experts == index[:, None], -np.inf, left)
    e = np.exp(np.stack(values, axis=-1) - values[0][:, None])
    return {"weights": e / e.sum(axis=-1, keepdims=True), "chosen": np.stack(chosen, axis=-1)}
