"""Textures of a variant: as structs, which is how the cpu device's headers have them.

A texture that is an argument of some launch is an object (`cudaTextureObject_t`). Any other is a
reference at namespace scope (`texture<float, 2>`), which the harness sets in front of the kernels.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tokitai_cli.core.model.buffers import passed_buffers
from tokitai_cli.core.model.spec import Buffer, Spec, Texture, Variant

#: Dtypes of arrays that textures read, in the order of tokitai::Channel (textures.hpp).
DTYPES = ("float32", "float64", "int8", "int16", "int32", "uint8", "uint16", "uint32")
ADDRESSES = ("clamp", "border", "wrap", "mirror")  # in the order of tokitai::Border
MOST_AXES = 3


def with_textures(spec: Spec) -> Spec:
    """The spec, its textures among the structs of each variant.

    What cannot be meant is left out: the reader's rules say so.
    """
    if not any(one.textures for one in spec.variants.values()):
        return spec
    variants = {name: _variant(one) for name, one in spec.variants.items()}
    return msgspec.structs.replace(spec, variants=variants)


def references(variant: Variant) -> dict[str, str]:
    """Textures that no launch passes, and what the source calls each."""
    passed = {str(arg) for launch in variant.launches for arg in launch.args}
    return {
        name: one.reference or name for name, one in variant.textures.items() if name not in passed
    }


def _variant(variant: Variant) -> Variant:
    buffers = passed_buffers(variant)
    told = {
        name: _fields(one, buffers[one.array])
        for name, one in variant.textures.items()
        if one.array in buffers
        and buffers[one.array].dtype in DTYPES
        and name not in variant.structs
    }
    return msgspec.structs.replace(variant, structs={**variant.structs, **told})


def axes_of(texture: Texture, shape: list[Any]) -> list[Any]:
    """Extents of a texture along x, y and z, as far as its array has them."""
    return [*reversed(shape[: len(shape) - (texture.channels > 1)])]


def _fields(texture: Texture, buffer: Buffer) -> dict[str, Any]:
    """Fields of the header's struct."""
    axes = axes_of(texture, buffer.shape)
    width, height, depth = (*axes, 1, 1, 1)[:MOST_AXES]
    given = texture.address
    each = [given] * MOST_AXES if isinstance(given, str) else (*given, "clamp", "clamp", "clamp")
    x, y, z = (ADDRESSES.index(one) for one in each[:MOST_AXES])
    return {
        "data": texture.array,
        "width": width,
        "height": height,
        "depth": depth,
        "dtype": DTYPES.index(buffer.dtype),
        "channels": texture.channels,
        "dimensions": len(axes),
        "linear": int(texture.filter == "linear"),
        "normalized": int(texture.normalized),
        "as_float": int(texture.read == "normalized-float"),
        "address_x": x,
        "address_y": y,
        "address_z": z,
    }
