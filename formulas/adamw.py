"""One step of AdamW."""

import numpy as np


def step(params, inputs, scalars):
    """Decay of the parameter, moments of the gradient, and a step along the corrected ones."""
    lr, beta1, beta2 = scalars["lr"], scalars["beta1"], scalars["beta2"]
    g = inputs["gradient"]
    first = beta1 * inputs["first"] + (1.0 - beta1) * g
    second = beta2 * inputs["second"] + (1.0 - beta2) * g * g
    decayed = inputs["parameter"] - lr * scalars["decay"] * inputs["parameter"]
    root = np.sqrt(second / scalars["correction2"]) + scalars["eps"]
    return {
        "parameter": decayed - lr * (first / scalars["correction1"]) / root,
        "first": first,
        "second": second,
    }
