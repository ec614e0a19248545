"""Texture fetches as the CUDA C++ Programming Guide has them, axis by axis."""

import numpy as np


def _indices(index, extent, address):
    """Texels along an axis, and which of them lie in the array."""
    inside = (index >= 0) & (index < extent)
    if address == "wrap":
        return np.mod(index, extent), np.ones_like(inside)
    if address == "mirror":
        turned = np.mod(index, 2 * extent)
        return np.minimum(turned, 2 * extent - 1 - turned), np.ones_like(inside)
    return np.clip(index, 0, extent - 1), inside | (address == "clamp")


def _sampled(texels, points, *, linear=False, normalized=False, address="clamp"):
    """points: x, y, z. texels: along z, y, x as far as there are points, channels behind them."""
    corners = [(np.float64(1.0), ())]
    for axis, x in enumerate(points):
        extent = texels.shape[len(points) - 1 - axis]
        at = x.astype(np.float32)
        at = (at * np.float32(extent) if normalized else at).astype(np.float64)
        at -= 0.5 * linear
        first = np.floor(at)
        part = np.rint((at - first) * 256) / 256 if linear else np.zeros_like(at)
        more = []
        for step, weight in ((0, 1 - part), (1, part)):
            index, inside = _indices(first.astype(np.int64) + step, extent, address)
            more += [(w * weight * inside, (index, *before)) for w, before in corners]
        corners = more
    channels = texels.ndim - len(points)
    return sum(w[(..., *[None] * channels)] * texels[index] for w, index in corners)


def _at(inputs):
    return inputs["at"][:, 0], inputs["at"][:, 1]


def point(params, inputs, scalars):
    return {"out": _sampled(inputs["texels"], _at(inputs))}


def border(params, inputs, scalars):
    return {"out": _sampled(inputs["texels"], _at(inputs), linear=True, address="border")}


def wrapped(params, inputs, scalars):
    told = {"linear": True, "normalized": True, "address": "wrap"}
    return {"out": _sampled(inputs["texels"], _at(inputs), **told)}


def mirrored(params, inputs, scalars):
    told = {"normalized": True, "address": "mirror"}
    return {"out": _sampled(inputs["texels"], _at(inputs), **told)}


def numbered(params, inputs, scalars):
    texels, at = inputs["texels"], inputs["at"]
    inside = (at >= 0) & (at < len(texels))
    return {"out": np.where(inside, texels[np.where(inside, at, 0)], 0)}


def tinted(params, inputs, scalars):
    return {"out": _sampled(inputs["texels"] / 255.0, _at(inputs), linear=True)}


def in_space(params, inputs, scalars):
    z = 0.5 * (np.arange(len(inputs["at"])) % 9)
    return {"out": _sampled(inputs["texels"], (*_at(inputs), z), linear=True)}
