"""What the kernels compute, in plain numpy."""

import numpy as np

from tokitai_cli.formula import loosen

BLOCK = 64


def dequantise(params, inputs, scalars):
    """Each byte is looked up, and scaled by the largest magnitude of its block."""
    scale = inputs["absmax"].repeat(BLOCK)[: params["n"]]
    return {"out": inputs["code"][inputs["a"].astype(np.int64)] * scale}


def dequantise_product(params, inputs, scalars):
    """A product of int8 matrices, scaled back by rows and columns: both were scaled to 127."""
    scale = (
        inputs["row_stats"][:, None] * inputs["column_stats"][None, :] * np.float32(6.200012e-05)
    )
    return {"out": inputs["a"] * scale + inputs["bias"][None, :]}


def quantise_rows(params, inputs, scalars):
    """Rows of float16 scaled so that their largest magnitude is 127, and rounded."""
    largest = np.abs(inputs["a"]).max(axis=1)
    return {"out": np.rint(inputs["a"] * (127 / largest)[:, None]), "row_stats": largest}


def momentum(params, inputs, scalars):
    """The second step of SGD with momentum."""
    state = inputs["state1"] * scalars["beta1"] + inputs["g"] * scalars["gnorm_scale"]
    return {"p": inputs["p"] - scalars["lr"] * state, "state1": state}


def adam(params, inputs, scalars):
    """The second step of Adam, without decay. 1 - beta2 * beta2 cancels, so that its error counts."""
    one = inputs["unorm"] * 0 + 1
    beta1, beta2, g = scalars["beta1"], scalars["beta2"], inputs["g"]
    first = inputs["state1"] * beta1 + (1 - beta1) * g
    second = inputs["state2"] * beta2 + (1 - beta2) * g * g
    # Powers as powf gives them, out of a logarithm and an exponential that are approximate.
    root2 = np.sqrt(1 - loosen(one * beta2 * beta2, 16))
    size = scalars["lr"] * root2 / (1 - loosen(one * beta1 * beta1, 16))
    step = first / (np.sqrt(second) + scalars["eps"] * root2)
    return {"p": inputs["p"] - size * step, "state1": first, "state2": second}


def product_4bit(params, inputs, scalars):
    """A matrix of 4-bit numbers, high half first, looked up and scaled in blocks, times a vector."""
    halves = np.stack([inputs["b"] >> 4, inputs["b"] & 15], axis=-1).astype(np.int64)
    table = inputs["datatype"][halves.reshape(params["rows"], -1)]
    scale = inputs["absmax"].repeat(BLOCK).reshape(params["rows"], -1)
    return {"out": (table * scale) @ inputs["a"]}


def quantise(params, inputs, scalars):
    """The largest magnitude of each block, and the nearest entry of a rising table for each element."""
    blocks = inputs["a"].reshape(-1, 512)
    largest = np.abs(blocks).max(axis=1)
    scaled = blocks / largest[:, None]
    nearest = np.abs(scaled[:, :, None] - inputs["code"][None, None, :]).argmin(axis=2)
    return {"out": nearest.reshape(-1).astype(np.uint8), "absmax": largest}
