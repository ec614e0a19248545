"""Drafts of kernels that fetch from textures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.drafts.test_arguments import drafted

THERE = "int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;"
FLAT = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n)"
WHOLE = "cudaTextureDesc d; d.filterMode = cudaFilterModeLinear; d.addressMode[0] = cudaAddressModeWrap;"
BY_NAME: dict[str, tuple[str, str, str, tuple[str, dict[str, Any]], tuple[str, list[Any]]]] = {
    "one number": (
        "texture<float> line;",
        f"float* out, int n) {{ {FLAT} out[i] = tex1Dfetch(line, i);",
        "",
        ("line", {"array": "line_texels"}),
        ("float32", ["n"]),
    ),
    "two coordinates": (
        "texture<float, 2, cudaReadModeElementType> image;",
        f"float* out, int w, int h) {{ {THERE} if (x < w && y < h) out[y * w + x] = tex2D(image, x, y);",
        "",
        ("image", {"array": "image_texels"}),
        ("float32", ["h", "w"]),
    ),
    "sizes that the kernel does not have": (
        "texture<int, 2> image;",
        f"int* out, int n) {{ {FLAT} out[i] = tex2D(image, i, 0);",
        "",
        ("image", {"array": "image_texels"}),
        ("int32", ["image_height", "image_width"]),
    ),
    "colours in a namespace": (
        "namespace a { texture<uchar4, 2, cudaReadModeNormalizedFloat> image; } using namespace a;",
        f"float4* o, int w, int h) {{ {THERE} if (x < w && y < h) o[y * w + x] = tex2D(image, x, y);",
        "image.filterMode = cudaFilterModeLinear; image.normalized = true;",
        ("image", {"array": "image_texels", "channels": 4, "filter": "linear", "normalized": True,
                   "read": "normalized-float", "reference": "a::image"}),
        ("uint8", ["h", "w", 4]),
    ),
    "an object through a function": (
        "__device__ float at(cudaTextureObject_t t, int i) { return tex1Dfetch<float>(t, i); }",
        f"cudaTextureObject_t from, float* out, int n) {{ {FLAT} out[i] = at(from, i);",
        "",
        ("from", {"array": "from_texels"}),
        ("float32", ["n"]),
    ),
    "an object as the host describes it": (
        "",
        f"cudaTextureObject_t t, float* o, int w, int h) {{ {THERE}"
        " o[y * w + x] = tex2D<float>(t, x, y);",
        f"{WHOLE} d.normalizedCoords = 1; d.readMode = cudaReadModeNormalizedFloat;",
        ("t", {"array": "t_texels", "filter": "linear", "address": "wrap", "normalized": True,
               "read": "normalized-float"}),
        ("uint8", ["h", "w"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_NAME)
def test_textures_get_an_array_and_how_the_host_has_them_sampled(tmp_path: Path, name: str) -> None:
    declared, body, host, (texture, told), array = BY_NAME[name]
    text = f"{declared}\n__global__ void k({body} }}\nvoid set() {{ {host} }}\n"
    variant = drafted(text, tmp_path).variants["main"]
    found = variant.textures[texture]
    fields: dict[str, Any] = {key: getattr(found, key) for key in told}
    assert fields == told
    defaults = {"channels": 1, "filter": "point", "address": "clamp", "normalized": False}
    left = {key: getattr(found, key) for key in defaults if key not in told}
    assert left == {key: value for key, value in defaults.items() if key in left}
    read = variant.inputs[found.array]
    assert (read.dtype, read.shape) == array
    assert "# guess: its array's shape, and how" in (tmp_path / "out" / "spec.yaml").read_text()


def test_an_object_that_an_instance_does_not_fetch_from_is_null(tmp_path: Path) -> None:
    text = f"""template <bool T>
    __global__ void k(cudaTextureObject_t t, const float* x, float* y, int n) {{
      {FLAT} y[i] = T ? tex1Dfetch<float>(t, i) : x[i];
    }}
    template __global__ void k<false>(cudaTextureObject_t, const float*, float*, int);"""
    variant = drafted(text, tmp_path).variants["main"]
    assert variant.launches[0].args == [0, "x", "y", "n"]
    assert not variant.textures
