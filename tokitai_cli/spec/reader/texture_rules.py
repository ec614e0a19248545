"""What a variant's textures must fulfil."""

from __future__ import annotations

from tokitai_cli.core.model.buffers import passed_buffers
from tokitai_cli.core.model.spec import Texture, Variant
from tokitai_cli.core.model.textures import DTYPES, MOST_AXES, axes_of
from tokitai_cli.spec.reader.document import Document, KeyPath
from tokitai_cli.spec.reader.symbols import check_known

_WHOLE = ("int8", "uint8", "int16", "uint16")  # that are read as floats from -1 or 0 to 1


def check_textures(document: Document, path: KeyPath, variant: Variant) -> None:
    """Raise SpecError at the first texture that cannot be meant."""
    buffers = passed_buffers(variant)
    arrays = [name for name in buffers if name in variant.inputs or name in variant.inout]
    for name, one in variant.textures.items():
        here = (*path, "textures", name)
        check_known(document, (*here, "array"), one.array, arrays, "input or in-out")
        buffer = buffers[one.array]
        if buffer.dtype not in DTYPES:
            message = f"a texture of {buffer.dtype}"
            hint = f"its array is one of {', '.join(DTYPES)}"
            raise document.fault((*here, "array"), message, hint)
        axes = axes_of(one, buffer.shape)
        if not 1 <= len(axes) <= MOST_AXES:
            message = f"the array `{one.array}` has {len(axes)} extents beside the channels"
            raise document.fault((*here, "array"), message, "a texture has 1 to 3")
        if one.channels > 1 and buffer.shape[-1] != one.channels:
            message = f"the last extent of `{one.array}` is {buffer.shape[-1]}"
            hint = f"write {one.channels} there: a texel has so many channels"
            raise document.fault((*here, "channels"), message, hint)
        _check_sampling(document, here, one, buffer.dtype)


def _check_sampling(document: Document, path: KeyPath, texture: Texture, dtype: str) -> None:
    as_float = texture.read == "normalized-float"
    if as_float and dtype not in _WHOLE:
        message = f"elements of {dtype} cannot be read as a normalized float"
        raise document.fault((*path, "read"), message, f"only {', '.join(_WHOLE)} can")
    if texture.filter == "linear" and not as_float and dtype != "float32":
        message = f"elements of {dtype} cannot be interpolated"
        raise document.fault((*path, "filter"), message, "write read: normalized-float, or point")
    given = [texture.address] if isinstance(texture.address, str) else texture.address
    if not texture.normalized and not {"wrap", "mirror"}.isdisjoint(given):
        message = "coordinates that are not normalized are clamped, or end at a border"
        raise document.fault(
            (*path, "address"), message, "write clamp, border, or normalized: true"
        )
