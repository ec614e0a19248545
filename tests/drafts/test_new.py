"""`tokitai new`: drafts of spec and formula for a kernel, whose gaps stop a run until filled in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tokitai_cli import spec
from tokitai_cli.cli.app import run
from tokitai_cli.core import resources
from tokitai_cli.core.errors import SpecError, UsageError
from tokitai_cli.drafts.writing import new
from tokitai_cli.run.specs import load
from tokitai_cli.spec.reader.gaps import GAP

KERNEL = """\
#include <hip/hip_runtime.h>
__global__ void scale(const float* x, float* y, float* sum, int m, int n, float alpha) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < m * n) { y[i] = alpha * x[i]; sum[i] += x[i]; }
}
"""
Capture = pytest.CaptureFixture[str]
FILES = ["README.md", "formula.py", "spec.yaml", "tokitai-spec-v1.schema.json"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.hip").write_text(KERNEL)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.suffix != ".hip")


def test_a_fresh_draft_says_what_is_missing_with_lines(folder: Path, capsys: Capture) -> None:
    assert run(["new", "k.hip"]) == 0
    assert names(folder) == FILES
    capsys.readouterr()
    assert run(["verify", "./spec.yaml", "--device", "cpu"]) == 2
    told = capsys.readouterr().err
    lines = [
        f"{name}:{number}: "
        for name in ("spec.yaml", "formula.py")
        for number, line in enumerate((folder / name).read_text().splitlines(), 1)
        if GAP in line
    ]
    assert len(lines) == 1
    assert all(line in told for line in lines)
    # A formula alone is enough of a gap, and its function cannot pass by itself.
    text = (folder / "spec.yaml").read_text()
    (folder / "spec.yaml").write_text(text.replace(GAP, "#"))
    with pytest.raises(SpecError, match=r"1 gap .*\n.*formula\.py:\d+"):
        spec.load(folder / "spec.yaml")
    code = compile((folder / "formula.py").read_text(), "formula.py", "exec")
    space: dict[str, object] = {}
    exec(code, space)
    with pytest.raises(NotImplementedError, match="scale"):
        space["scale"](  # type: ignore[operator]
            {"m": 1, "n": 1}, {"x": 0, "sum": 0}, {"alpha": 0}
        )


def test_roles_sizes_and_guesses_of_a_filled_draft(folder: Path) -> None:
    new(Path("k.hip"), Path("out"), "", "", (), {})
    for name in ("spec.yaml", "formula.py"):
        file = folder / "out" / name
        file.write_text(file.read_text().replace(GAP, "#"))
    loaded = spec.load(folder / "out" / "spec.yaml")
    main = loaded.spec.variants["main"]
    roles = [list(main.inputs), list(main.outputs), list(main.inout), list(main.scalars)]
    assert roles == [["x"], ["y"], ["sum"], ["alpha"]]
    assert [*loaded.spec.params] == ["m", "n"]
    assert main.source == "../k.hip"
    shapes = [one.shape for one in loaded.spec.suites["quick"]]
    assert shapes[0] == {"m": 1, "n": 1}
    assert all(one["m"] != one["n"] for one in shapes[1:])
    assert [bool(one["n"] % 256) for one in shapes] == [True, True, False, True]
    guesses = (folder / "out" / "spec.yaml").read_text().count("# guess:")
    assert guesses
    assert any(note.count("spec.yaml:") == guesses for note in loaded.notes)


@pytest.mark.parametrize("there", ["spec.yaml", "formula.py"])
def test_no_file_is_written_over_and_nothing_is_half_written(
    folder: Path, there: str, capsys: Capture
) -> None:
    (folder / there).write_text("mine")
    assert run(["new", "k.hip"]) == 2
    assert there in capsys.readouterr().err
    assert names(folder) == [there]
    assert (folder / there).read_text() == "mine"


def test_a_readme_stays_as_it_is_and_its_line_is_printed(folder: Path, capsys: Capture) -> None:
    (folder / "README.md").write_text("mine")
    assert run(["new", "k.hip"]) == 0
    assert "tokitai verify" in capsys.readouterr().out
    assert (folder / "README.md").read_text() == "mine"
    assert names(folder) == FILES


def test_the_kernel_is_asked_for_where_it_is_not_clear(folder: Path, capsys: Capture) -> None:
    Path("k.hip").write_text(KERNEL + KERNEL.replace("scale", "shift").partition("\n")[2])
    Path("none.hip").write_text("int x;")
    for arguments, words in (
        (["k.hip"], ["k.hip:2: ", "scale(", "k.hip:6: ", "shift(", "--kernel"]),
        (["k.hip", "--kernel", "turn"], ["`turn`", "scale(", "shift("]),
        (["none.hip"], ["no kernel"]),
        (["gone.hip"], ["gone.hip"]),
        (["."], ["folder"]),
        (["k.hip", "--kernel", "scale", "--like", "rmsnrm"], ["rmsnorm"]),
        (["k.hip", "--kernel", "scale", "--like", "rmsnorm.back"], ["bwd"]),
    ):
        assert run(["new", *arguments]) == 2
        told = capsys.readouterr().err
        assert all(word in told for word in words), told
    assert not names(folder)
    assert run(["new", "k.hip", "--kernel", "shift"]) == 0
    assert "kernel: shift" in (folder / "spec.yaml").read_text()


def test_one_of_several_of_a_name_is_named_by_its_types(folder: Path) -> None:
    other = KERNEL.partition("\n")[2].replace("float", "double")
    Path("k.hip").write_text(KERNEL + other)
    with pytest.raises(UsageError, match="several are named `scale`"):
        new(Path("k.hip"), folder, "scale", "", (), {})
    draft, _, _ = new(Path("k.hip"), folder, "scale:6", "", (), {})
    assert draft.instance == "scale(const double*, double*, double*, int, int, double)"
    for name in ("spec.yaml", "formula.py"):
        (folder / name).write_text((folder / name).read_text().replace(GAP, "#"))
    assert spec.load(folder / "spec.yaml").spec.variants["main"].inputs["x"].dtype == "float64"


def single_launches() -> list[str]:
    """Shipped variants of one launch, as --like names them."""
    return [
        f"{op}.{name}"
        for op, path in spec.builtin()
        for name, variant in spec.load(path).spec.variants.items()
        if len(variant.launches) == 1 and variant.by_formula is not None
    ]


@pytest.mark.parametrize("like", single_launches())
def test_a_shipped_kernel_is_drafted_like_itself(like: str, tmp_path: Path) -> None:
    """Its own arguments meet themselves: the draft has no gap, and the formula fits."""
    op, _, name = like.partition(".")
    shipped = spec.load(spec.find(op)).spec.variants[name]
    kernel = re.match(r"\w+", shipped.launches[0].kernel)
    assert kernel is not None
    draft, _, _ = new(resources.specs_dir() / shipped.source, tmp_path, kernel[0], like, (), {})
    main = load(tmp_path / "spec.yaml").spec.variants["main"]
    space: dict[str, object] = {}
    exec((tmp_path / "formula.py").read_text(), space)
    called = re.search(r"found = (.*)\(params, arrays, numbers\)", draft.formula)
    assert called is not None
    assert called[1] in space
    assert "its indices say" not in draft.spec
    assert len(main.launches[0].args) == len(shipped.launches[0].args)
    for role in ("inputs", "outputs", "inout"):
        mine, theirs = getattr(main, role), getattr(shipped, role)
        assert [one.shape for one in mine.values()] == [one.shape for one in theirs.values()]


def test_what_the_op_has_and_the_kernel_has_not_is_a_gap(folder: Path) -> None:
    draft, _, _ = new(Path("k.hip"), folder, "", "rmsnorm.bwd", (), {})
    assert re.search(rf'"rstd": None,  {GAP} .*rstd of rmsnorm.bwd', draft.formula)
    with pytest.raises(SpecError, match="gaps must be filled in"):
        spec.load(folder / "spec.yaml")
    draft, _, _ = new(Path("k.hip"), folder / "other", "", "softmax.fwd", (), {})
    assert re.search(rf'"sum": None,  {GAP}', draft.formula)
    assert re.search(rf"sum: {{.*{GAP} its shape", draft.spec)


INDEXED = """\
#include <hip/hip_runtime.h>
__global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, at = 0;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= N) return;
  if (row < M) for (int k = 0; k < K; ++k) C[row * N + col] = A[row * K + k] * B[k * N + col];
}
__global__ void norm(const float* x, const float* gamma, float* y, float* sums, int hidden) {
  const float* row = x + (size_t)blockIdx.x * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x)
    y[(size_t)blockIdx.x * hidden + i] = row[i] * gamma[i];
  sums[blockIdx.x] = 1;
}
__global__ void loss(const float* logits, const int* label, const bool* mask, float* cost, int tokens,
                     int vocab) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= tokens || !mask[t]) return;
  const float* row = logits + (size_t)t * vocab;
  cost[t] = row[label[t]];
}
__global__ void largest(const float* x, float* y, int tall, int wide) {
  int r = blockIdx.x;
  for (int j = 0; j < wide; ++j) y[r] = fmaxf(y[r], x[r * wide + j]);
}
__global__ void launched(const float* x, float* y, int tall, int wide) {
  int r = blockIdx.x;
  if (r < tall) for (int j = 0; j < wide; ++j) y[r] += x[r * wide + j];
}
#define THREADS 64
__global__ void attend(const float* q, const float* k, float* o, int heads, int seq, int dim) {
  int query = blockIdx.x, head = blockIdx.y;
  __shared__ float acc[THREADS][128];
  const float* mine = q + ((size_t)head * seq + query) * dim;
  const float* keys = k + (size_t)head * seq * dim;
  for (int j = threadIdx.x; j <= query; j += THREADS)
    for (int d = 0; d < dim; d++) acc[threadIdx.x][d] = mine[d] * keys[j * dim + d];
  float* out = &o[((size_t)head * seq + query) * dim];
  for (int d = threadIdx.x; d < dim; d += THREADS) out[d] = acc[0][d];
}
__global__ void turn(float* x, const float* table, const int* pos, int tokens, int heads, int dim) {
  const int half = dim >> 1;
  for (int i = threadIdx.x; i < heads * half; i += blockDim.x) {
    const int head = i / half, pair = i % half;
    float* row = x + ((size_t)blockIdx.x * heads + head) * dim;
    row[2 * pair] *= table[pos[blockIdx.x] * half + pair];
  }
}
__global__ void image(const float* x, const float* w, float* y, int C, int H, int W) {
  int c = blockIdx.z, h = blockIdx.y * blockDim.y + threadIdx.y;
  int at = blockIdx.x * blockDim.x + threadIdx.x, i = (c * H + h) * W + at;
  if (h < H && at < W) y[i] = x[i] * w[c];
}
__global__ void pick(const float* table, const int* ids, float* out, int vocab, int dim) {
  int id = ids[blockIdx.x];
  table += (size_t)id * dim;
  for (int d = threadIdx.x; d < dim; d += blockDim.x) out[blockIdx.x * dim + d] = table[d];
}
struct Plate { const float* in; float* out; int width, height; };
__global__ void warm(Plate p) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x < p.width && y < p.height) p.out[y * p.width + x] = p.in[y * p.width + x - 1];
}
template <typename T, int BLOCK>
__global__ void norms(T* y, const T* x, long cols) {
  const T* in = x + blockIdx.x * cols;
  for (long c = threadIdx.x; c < cols; c += BLOCK) y[blockIdx.x * cols + c] = in[c];
}
__global__ void sparse(const int* starts, const int* col, const float* vals, const float* in, float* y,
                       int n_rows, int n_cols, int nnz) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n_rows) return;
  float sum = 0;
  int end = starts[row + 1];
  for (int j = starts[row]; j < end; ++j) sum += vals[j] * in[col[j]];
  y[row] = sum;
}
__global__ void flip(float* out, const float* in, int w, int h) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < w && y + j < h) use(in[(y + j) * w + x], threadIdx.y + j);
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < h && y + j < w) out[(y + j) * h + x] = 1;
}
__global__ void count(const unsigned char* data, unsigned int* bins, int* most, int n) {
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&bins[data[i]], 1u);
  if (threadIdx.x == 0) *most = n;
}
void host(float* x, float* y, int a, int b, Plate plate) {
  launched<<<a, 64>>>(x, y, a, b);
  warm<<<dim3((plate.width + 31) / 32, (plate.height + 7) / 8), dim3(32, 8)>>>(plate);
  norms<float, 128><<<a, 128>>>(y, x, b);
}
"""


@pytest.mark.parametrize(
    ("kernel", "params", "shapes"),
    [
        ("gemm", ["M", "N", "K"], {"A": ["M", "K"], "B": ["K", "N"], "C": ["M", "N"]}),
        ("norm", ["rows", "hidden"],
         {"x": ["rows", "hidden"], "gamma": ["hidden"], "y": ["rows", "hidden"], "sums": ["rows"]}),
        ("loss", ["tokens", "vocab"],
         {"logits": ["tokens", "vocab"], "label": ["tokens"], "mask": ["tokens"], "cost": ["tokens"]}),
        ("largest", ["tall", "wide"], {"x": ["tall", "wide"], "y": ["tall"]}),
        ("launched", ["tall", "wide"], {"x": ["tall", "wide"], "y": ["tall"]}),
        ("attend", ["heads", "seq", "dim"], {name: ["heads", "seq", "dim"] for name in "qko"}),
        ("turn", ["table_rows", "tokens", "heads", "dim"],
         {"table": ["table_rows", "dim // 2"], "pos": ["tokens"], "x": ["tokens", "heads", "dim"]}),
        ("image", ["C", "H", "W"], {"x": ["C", "H", "W"], "w": ["C"], "y": ["C", "H", "W"]}),
        ("pick", ["rows", "vocab", "dim"],
         {"table": ["vocab", "dim"], "ids": ["rows"], "out_": ["rows", "dim"]}),
        ("warm", ["p_width", "p_height"],
         {"p_in": ["p_height", "p_width"], "p_out": ["p_height", "p_width"]}),
        ("norms", ["a", "cols"], {"y": ["a", "cols"], "x": ["a", "cols"]}),
        ("sparse", ["n_rows", "n_cols", "nnz"],
         {"starts": ["n_rows + 1"], "col": ["nnz"], "vals": ["nnz"], "in": ["n_cols"], "y": ["n_rows"]}),
        ("flip", ["w", "h"], {"in": ["h", "w"], "out_": ["w", "h"]}),
        ("count", ["n"], {"data": ["n"], "bins": ["256"], "most": ["1"]}),
    ],
)  # fmt: skip
def test_shapes_are_guessed_by_indices(
    kernel: str, params: list[str], shapes: dict[str, list[str]], tmp_path: Path
) -> None:
    (tmp_path / "k.hip").write_text(INDEXED)
    draft, _, _ = new(tmp_path / "k.hip", tmp_path, kernel, "", (), {})
    for name in ("spec.yaml", "formula.py"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace(GAP, "#"))
    loaded = spec.load(tmp_path / "spec.yaml").spec
    main = loaded.variants["main"]
    assert [*loaded.params] == params
    assert {
        n: [str(extent) for extent in one.shape]
        for n, one in {**main.inputs, **main.outputs, **main.inout}.items()
    } == shapes
    if kernel == "norm":
        assert main.launches[0].grid == ["rows"]
        assert "grid: [rows]  # guess:" in draft.spec
    grid, block = main.launches[0].grid, main.launches[0].block
    told = {
        "attend": (["seq", "heads"], [64]),
        "image": (["ceil_div(W, 16)", "ceil_div(H, 16)", "C"], [16, 16]),
        "warm": (["(p_width + 31) // 32", "(p_height + 7) // 8"], [32, 8]),
        "norms": (["a"], [128]),
        "flip": (["ceil_div(w, 32)", "ceil_div(h, 32)"], [32, 8]),
        "count": ([1], [256]),
    }
    assert (grid, block) == told.get(kernel, (grid, block))


def test_limits_and_ranges_are_guessed_by_the_text(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(INDEXED)
    draft, _, _ = new(tmp_path / "k.hip", tmp_path / "a", "attend", "", (), {})
    assert "dim: {default: 7, max: 128" in draft.spec
    assert "dim: 127}, why: a tail" in draft.spec
    draft, _, _ = new(tmp_path / "k.hip", tmp_path / "t", "turn", "", (), {})
    assert "multiple_of: 2" in draft.spec
    assert not re.search(r"[^_]dim: \d*[13579][,}]", draft.spec.partition("suites")[2])
    draft, _, _ = new(tmp_path / "k.hip", tmp_path / "p", "pick", "", (), {})
    assert "ids: {kind: index-uniform, below: vocab}" in draft.spec
    draft, _, _ = new(tmp_path / "k.hip", tmp_path / "s", "sparse", "", (), {})
    assert (
        "starts: {kind: offsets, end: nnz}, col: {kind: index-uniform, below: n_cols}" in draft.spec
    )
    assert '    in_ = inputs["in"]' in draft.formula


KEPT = """#include <hip/hip_fp16.h>
__global__ void kept(const __half* a, {type}* keep, {type}* y, int n) {{
    int i = threadIdx.x;
    {first}
    y[i] = keep[i];
    {last}
}}
"""


@pytest.mark.parametrize(
    ("type_", "first", "last", "said"),
    [
        ("__half", "keep[i] = a[i] + keep[i];", "", True),
        ("float", "keep[i] = __half2float(a[i]);", "", False),
        ("__half", "", "keep[i] = a[i];", False),
    ],
)
def test_a_narrow_array_that_is_read_again_is_told_in_the_formula(
    type_: str, first: str, last: str, said: bool, tmp_path: Path
) -> None:
    (tmp_path / "k.hip").write_text(KEPT.format(type=type_, first=first, last=last))
    draft, _, _ = new(tmp_path / "k.hip", tmp_path / "d", "kept", "", (), {})
    assert ('continue with stored(keep, "float16")' in draft.formula) is said


def test_variables_that_a_draft_leaves_out_are_told(tmp_path: Path) -> None:
    source = tmp_path / "count.cu"
    source.write_text(
        "namespace my { __constant__ float table[4]; }\n"
        "__device__ unsigned int counter, idle;\n"
        "__global__ void count(const float* x, float* y, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) y[i] = my::table[i & 3] * x[i];\n"
        "    if (i < n && x[i] > 0) atomicAdd(&counter, 1u);\n"
        "}\n",
        "utf-8",
    )
    draft, _, _ = new(source, tmp_path / "made", "", "", (), {})
    assert (
        "    non_claims:\n"
        '      - "variable my::table: read as it starts"  # guess: that this is meant\n'
        '      - "variable counter: written, not judged"'
        "  # guess: that this is no output (symbol: counter)\n"
    ) in draft.spec
    assert "idle" not in draft.spec
