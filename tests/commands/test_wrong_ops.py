"""Wrong kernels of the ops that formulas judge: the shipped source with one change of its text."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.runs import run, shipped_tree
from tests.support import slow
from tokitai_cli.core import resources
from tokitai_cli.core.model.verdict import Verdict

# Op and variant, what is wrong, the shipped text, and what stands there instead.
WRONG = [
    ("gemm f16", "terms behind the last whole tile dropped", "start < k;", "start + kTile <= k;"),
    ("gemm bf16", "an element of the next row in the tail", "col < cols ? load", "true ? load"),
    ("gemm f32", "no barrier in front of the next tile",
     "tile_b[i][threadIdx.x];\n    __syncthreads();", "tile_b[i][threadIdx.x];"),
    ("gemm int8", "scale of the row taken for the column's", "scale_b[col]", "scale_b[row % n]"),
    ("gelu tanh", "constant of another gelu", "0.044715f", "0.04f"),
    ("gelu tanh-grad", "derivative of the inner cube left out", "3.0f * kCubic", "kCubic"),
    ("gelu erf", "root of a half left out", "erff(x * kRootHalf)", "erff(x)"),
    ("gelu erf-grad", "density without the factor x", "below + x * density", "below + density"),
    ("silu fwd", "sign in the exponential", "expf(-x)", "expf(x)"),
    ("silu gated", "halves exchanged", "silu_of(load(x, column)) * load(x, cols + column)",
     "silu_of(load(x, cols + column)) * load(x, column)"),
    ("silu gated-bf16", "gate taken for what it lets through", "load(x, cols + column)",
     "load(x, column)"),
    ("rmsnorm fwd", "eps outside of the root", "rsqrtf(block_sum(squares, partial) / cols + eps)",
     "1.0f / (sqrtf(block_sum(squares, partial) / cols) + eps)"),
    ("rmsnorm fwd-bf16", "eps left out", " / cols + eps)", " / cols)"),
    ("rmsnorm bwd", "mean of the projection left out", "- load(input, start + j) * row_rstd * mean",
     ""),
    ("rmsnorm bwd", "second row onwards only, in grad_weight", "int i = threadIdx.x; i < rows",
     "int i = threadIdx.x + 1; i < rows"),
    ("rotary split", "sign of the second sine", "b * cosines[angle] + a", "b * cosines[angle] - a"),
    ("rotary interleaved", "the other layout of pairs", "interleaved ? 2 * pair : pair",
     "interleaved ? pair : pair"),
    ("rotary split", "position taken from the token's place", "positions[blockIdx.x]) * pairs",
     "(blockIdx.x % 5)) * pairs"),
    ("cross-entropy fwd", "ignore_index not looked at", "label != ignore_index && ", ""),
    ("cross-entropy fwd", "maximum not added again", "(load(x, label) - row.largest)",
     "load(x, label)"),
    ("cross-entropy bwd", "label not subtracted", "(j == label ? 1.0f : 0.0f)", "0.0f"),
    ("cross-entropy bwd", "rows that are left out never written",
     "for (int j = threadIdx.x; j < cols; j += kThreads) store(grad_logits, start + j, 0.0f);", ""),
    ("attention causal-fwd", "the sums are not rescaled", "expf(largest - next)", "1.0f"),
    ("attention causal-fwd", "mask one key too wide", "keys - queries + 1;",
     "keys - queries + (query + 1 < queries ? 2 : 1);"),
    ("attention causal-fwd-bf16", "scores not scaled", "dot * scale", "dot"),
    ("adamw step", "decay coupled with the gradient", "const float g = load(gradient, i);",
     "const float g = load(gradient, i) + decay * parameter[i];"),
    ("adamw step", "eps inside of the root", "(sqrtf(v / correction2) + eps)",
     "sqrtf(v / correction2 + eps)"),
    ("adamw step-bf16", "first moment not corrected", "(m / correction1)", "m"),
    ("fp8-cast e4m3fn", "ties away from zero", "rintf(", "roundf("),
    ("fp8-cast e4m3fnuz", "-0 written", "if (fnuz && code == 0) return 0;", ""),
    ("fp8-cast e4m3fn-saturated", "NaN beyond the largest number", "if (!saturates)", "if (true)"),
    ("fp8-cast e4m3fnuz-saturated", "subnormals flushed", "max(exponent - 1, 1 - bias) :",
     "exponent - 1 :"),
    ("topk-gating fwd", "ties to the higher expert", "index < other_index", "index > other_index"),
    ("topk-gating fwd", "softmax over all but the first", "int rank = 0; rank < k; ++rank) sum",
     "int rank = 1; rank < k; ++rank) sum"),
    ("reduce sum", "last column left out", "j < cols; j += kThreads) sum +=",
     "j < cols - 1; j += kThreads) sum +="),
    ("reduce max", "NaN lost", "nan != nan ? nan : largest", "largest"),
    ("reduce max", "starts at 0", "float largest = load(input, start);", "float largest = 0.0f;"),
    ("scan inclusive", "nothing carried over", "before += sums[kThreads - 1];", ""),
    ("scan exclusive", "inclusive instead", "(thread > 0 ? sums[thread - 1] : 0.0f)",
     "sums[thread]"),
    ("scan inclusive", "a barrier left out", "      __syncthreads();\n      sums[thread] += more;",
     "      sums[thread] += more;"),
]  # fmt: skip


# Every test run tries one change of each op.
FEW = {
    *("root of a half left out", "sign in the exponential", "eps left out", "scores not scaled"),
    *("terms behind the last whole tile dropped", "the other layout of pairs", "-0 written"),
    *("maximum not added again", "first moment not corrected", "ties to the higher expert"),
    *("NaN lost", "a barrier left out"),
}


@pytest.mark.parametrize(
    ("name", "words", "text", "wrong"),
    [one if one[1] in FEW else slow(*one) for one in WRONG],
    ids=lambda value: str(value)[:40].replace("/", " "),
)
def test_a_wrong_kernel_is_refuted(
    name: str, words: str, text: str, wrong: str, tmp_path: Path
) -> None:
    op, variant = name.split()
    tree = shipped_tree(op)
    one = tree["variants"][variant]
    shipped = resources.specs_dir() / one["source"]
    source = shipped.read_text("utf-8")
    assert text in source, words
    (tmp_path / "storage.hpp").write_bytes((shipped.parent / "storage.hpp").read_bytes())
    (tmp_path / "wrong.hip").write_text(source.replace(text, wrong), "utf-8")
    one["source"] = "wrong.hip"
    tree["variants"] = {variant: one}
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False), "utf-8")
    found = run(path, tmp_path, suite="quick")
    assert found.verdict is Verdict.REFUTED, (words, found.reason)
