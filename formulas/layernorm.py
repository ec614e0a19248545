"""Layer normalisation of rows, and its gradients."""

from tokitai_cli.formula import rsqrt, stored


def fwd(params, inputs, scalars):
    """y = (x - mean) rstd gamma + beta with rstd = 1 / sqrt(variance + eps), row by row."""
    x = inputs["x"]
    mean = stored(x.mean(axis=-1, keepdims=True), output="mean")
    d = x - mean
    rstd = rsqrt((d * d).mean(axis=-1, keepdims=True) + scalars["eps"])
    y = d * rstd * inputs["gamma"] + inputs["beta"]
    return {"y": y, "mean": mean[..., 0], "rstd": rstd[..., 0]}


def bwd(params, inputs, scalars):
    """Gradients with respect to x, gamma and beta, mean and rstd of each row of x being given."""
    grad, columns = inputs["grad_y"], params["cols"]
    rstd = inputs["rstd"][:, None]
    xh = (inputs["x"] - inputs["mean"][:, None]) * rstd
    d = grad * inputs["gamma"]
    first = d.sum(axis=-1, keepdims=True)
    second = (d * xh).sum(axis=-1, keepdims=True)
    return {
        "grad_x": rstd / columns * (columns * d - first - xh * second),
        "grad_gamma": (xh * grad).sum(axis=0),
        "grad_beta": grad.sum(axis=0),
    }
