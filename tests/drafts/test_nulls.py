"""An address that the host leaves out is null in a draft only where the kernel asks for it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.runs import tokitai_here

TEXT = """\
#define AT (blockIdx.x * blockDim.x + threadIdx.x)
struct Args { const float* x; const float* bias; const float* mask; float* y; int n; int masked; };
struct Scale { static const float half = 0.5f; static double const whole = 1.0; };
__global__ void added(Args a) {
  if (AT >= a.n) return;
  float v = a.x[AT] + a.bias[AT];
  if (a.mask) v *= a.mask[AT];
  a.y[AT] = v * Scale::half * Scale::whole;
}
__global__ void asked(Args a) {
  if (AT >= a.n) return;
  float v = a.masked ? a.x[AT] * a.mask[AT] : a.x[AT];
  bool has = a.bias != nullptr;
  a.y[AT] = v + (has ? a.bias[AT] : 0.f);
}
void filled_elsewhere(Args& a);
void run(float* x, float* y, int n) {
  Args a = {};
  a.x = x; a.y = y; a.n = n; a.bias = nullptr; a.mask = nullptr; a.masked = 0;
  filled_elsewhere(a);
  added<<<(n + 255) / 256, 256>>>(a);
  asked<<<(n + 255) / 256, 256>>>(a);
}
"""


def test_a_field_that_the_kernel_reads_is_an_array(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(TEXT, encoding="utf-8")
    words = ("find", tmp_path / "k.cu", "--run", "--json", "--write", tmp_path / "drafts")
    told = json.loads(tokitai_here(*words).stdout)["kernels"]
    assert [one["ended"] for one in told] == ["", ""]
    specs = [(tmp_path / "drafts" / one / "spec.yaml").read_text() for one in ("added", "asked")]
    assert "bias: a_bias, mask: null, " in specs[0]
    assert "bias: null, mask: a_mask, " in specs[1]
