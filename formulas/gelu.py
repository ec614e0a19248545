"""GELU and its gradients."""

import math

import numpy as np

from tokitai_cli.formula import erf as error_function

_SCALE = math.sqrt(2 / math.pi)


def tanh(params, inputs, scalars):
    """x/2 times 1 + the hyperbolic tangent of sqrt(2/pi) (x + 0.044715 x^3)."""
    x = inputs["x"]
    return {"y": 0.5 * x * (1.0 + np.tanh(_SCALE * (x + 0.044715 * x**3)))}


def tanh_grad(params, inputs, scalars):
    """Its derivative times grad_y."""
    x = inputs["x"]
    t = np.tanh(_SCALE * (x + 0.044715 * x**3))
    steepness = _SCALE * (1.0 + 3 * 0.044715 * x**2)
    slope = 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t**2) * steepness
    return {"grad_x": inputs["grad_y"] * slope}


def erf(params, inputs, scalars):
    """x/2 times 1 + the error function of x / sqrt(2)."""
    x = inputs["x"]
    return {"y": 0.5 * x * (1.0 + error_function(x * math.sqrt(0.5)))}


def erf_grad(params, inputs, scalars):
    """Its derivative times grad_y: P(x) + x p(x) of the normal distribution."""
    x = inputs["x"]
    below = 0.5 * (1.0 + error_function(x * math.sqrt(0.5)))
    density = np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
    return {"grad_x": inputs["grad_y"] * (below + x * density)}
