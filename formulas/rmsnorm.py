"""RMS normalisation of rows, and its gradients."""

from tokitai_cli.formula import rsqrt


def fwd(params, inputs, scalars):
    """x / sqrt(mean(x^2) + eps) times weight, and the reciprocal root."""
    x = inputs["x"]
    rstd = rsqrt((x * x).mean(axis=-1, keepdims=True) + scalars["eps"])
    return {"y": x * rstd * inputs["weight"], "rstd": rstd[:, 0]}


def bwd(params, inputs, scalars):
    """Gradients with respect to x and weight, for the reciprocal root that the forward pass stored."""
    rstd = inputs["rstd"].reshape(-1, 1)
    normalised = inputs["x"] * rstd
    d = inputs["grad_y"] * inputs["weight"]
    mean = (d * normalised).mean(axis=-1, keepdims=True)
    return {
        "grad_x": rstd * (d - normalised * mean),
        "grad_weight": (inputs["grad_y"] * normalised).sum(axis=0),
    }
