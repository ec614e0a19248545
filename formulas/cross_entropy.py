"""Cross-entropy of rows of logits with integer labels, and its gradient."""

import numpy as np


def _parts(params, inputs, scalars):
    """Logits minus their row's largest, which columns are labels, which rows count."""
    labels, columns = inputs["labels"], np.arange(params["cols"])
    counts = (labels != scalars["ignore_index"]) & (labels >= 0) & (labels < params["cols"])
    # Rows that are left out may hold anything.
    logits = np.where(counts[:, None], inputs["logits"], 0.0)
    below = logits - logits.max(axis=-1, keepdims=True)
    return below, labels[:, None] == columns, counts


def fwd(params, inputs, scalars):
    """log(sum of exp(x - max)) - (x[label] - max); 0 for rows that are left out."""
    below, _, counts = _parts(params, inputs, scalars)
    at_label = below[np.arange(params["rows"]), np.where(counts, inputs["labels"], 0)]
    loss = np.log(np.exp(below).sum(axis=-1)) - at_label
    return {"loss": np.where(counts, loss, 0.0)}


def bwd(params, inputs, scalars):
    """grad_loss (softmax - 1 at the label); 0 for rows that are left out."""
    below, is_label, counts = _parts(params, inputs, scalars)
    e = np.exp(below)
    probabilities = e / e.sum(axis=-1, keepdims=True)
    gradient = inputs["grad_loss"].reshape(-1, 1) * (probabilities - is_label)
    return {"grad_logits": np.where(counts[:, None], gradient, 0.0)}
