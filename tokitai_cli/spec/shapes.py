"""Shapes of arrays, guessed by how a kernel's text indexes them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CAST = re.compile(
    r"\(\s*(?:size_t|int|long(?: long)?|u?int64_t|unsigned)\s*\)|static_cast<[^<>]*>"
)


def one_block_a_row(body: str) -> bool:
    """Whether blocks count rows: their index is never multiplied by the block's size."""
    text = re.sub(r"\s+", "", body)
    scaled = r"blockIdx\.x\)?\*\(?(?:blockDim|[A-Z_]{3,}|\d)|(?:blockDim\.x|[A-Z_]{3,})\*blockIdx"
    return "blockIdx.x" in text and not re.search(rf"{scaled}|gridDim", text)


def extents(body: str, place: str, sizes: Sequence[str], rows: str) -> list[str]:
    """Sizes that an array's indices go over, the stride last; empty where the text does not say.

    place: pattern of the array's name in `body`. rows: size that blocks count, or empty.
    """
    found: set[str] = set()
    stride = ""
    name = rf"(?<![\w.]){place}(?!\w)\s*"
    indices = re.findall(rf"{name}\[([^\[\]]+)\]", body) + re.findall(rf"{name}\+([^;,]+)", body)
    for index in indices:
        text = _opened(_CAST.sub("", index), body)
        bounded = {
            size
            for word in set(re.findall(r"[A-Za-z_]\w*", text))
            for size in sizes
            if word == size or re.search(rf"\b{word}\s*(?:<|>=|!=)\s*{size}\b", body)
        }
        found |= bounded | ({rows} if rows and "blockIdx.x" in text else set())
        strides = [size for size in sizes if re.search(rf"\*\s*{size}\b", text)]
        stride = strides[-1] if strides else stride
    order = [size for size in sizes if size in found and size != stride]
    return [*order, stride] if stride else order


def _opened(text: str, body: str) -> str:
    """`text` with the definitions of the kernel's own variables beside their names, two deep."""
    for _ in range(2):
        for word in set(re.findall(r"(?<!\.)\b[A-Za-z_]\w*", text)):
            told = re.search(
                rf"\b(?:int|size_t|long|unsigned|auto|int64_t)\s+{word}\s*=([^;,]+);", body
            )
            if told and told[1] not in text:
                text += f" + ({_CAST.sub('', told[1])})"
    return text
