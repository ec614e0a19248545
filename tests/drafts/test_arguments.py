"""What a draft calls a kernel's arguments, and what it takes for those of its template."""

from __future__ import annotations

from pathlib import Path

from tokitai_cli import spec
from tokitai_cli.core.model.spec import Spec
from tokitai_cli.cpp.source.listing import Unread
from tokitai_cli.drafts.search import drafts_of
from tokitai_cli.drafts.writing import new

COPY = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) to[i] = from[i];"


def drafted(source: str, folder: Path) -> Spec:
    """The draft of the only kernel, read as a spec."""
    (folder / "k.cu").write_text(source)
    new(folder / "k.cu", folder / "out", "", "", (), {})
    return spec.load(folder / "out" / "spec.yaml", judged=False).spec


def test_names_that_differ_by_an_underscore_stay_two(tmp_path: Path) -> None:
    source = """__global__ void k(const float* x, float* x_, int n, int n_) {
      int i = threadIdx.x;
      if (i < n && i < n_) x_[i] = x[i];
    }"""
    found = drafted(source, tmp_path).variants["main"]
    assert found.launches[0].args == ["x", "x_", "n", "n_"]
    assert (list(found.inputs), list(found.outputs)) == (["x"], ["x_"])


def test_names_longer_than_a_spec_has_are_cut_and_stay_apart(tmp_path: Path) -> None:
    long = "a_name_of_a_tensor_that_a_generator_made_and_that_nobody_would_have_written_by_hand"
    source = f"__global__ void k(const float* {long}_1, float* {long}_2, int n) {{{COPY}}}"
    source = source.replace("to[", f"{long}_2[").replace("from[", f"{long}_1[")
    found = drafted(source, tmp_path).variants["main"]
    names = [*found.inputs, *found.outputs]
    assert len(set(names)) == 2
    assert all(len(one) <= 63 and one.startswith(long[:50]) for one in names)


def test_an_explicit_instantiation_gives_the_arguments_of_the_template(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(f"""namespace a {{
    struct Twice {{ __device__ float operator()(float x) const {{ return 2 * x; }} }};
    template <typename T, typename F, int N = 3>
    __global__ void k(const T* from, T* to, int n) {{ {COPY} to[0] = F()(N); }}
    template __global__ void k<double, Twice, 7>(const double*, double*, int);
    }}""")
    found = drafts_of(tmp_path / "k.cu")
    assert not isinstance(found, Unread)
    (draft,) = found[0]
    assert draft.instance == "a::k<double, a::Twice, 7>"


def test_a_number_that_the_host_has_a_name_for_is_a_size(tmp_path: Path) -> None:
    found = drafted(
        """__global__ void add(const float* x, const float* b, float* y, int width) {
          int t = blockIdx.x, h = blockIdx.y;
          for (int i = threadIdx.x; i < width; i += blockDim.x)
            y[(t * gridDim.y + h) * width + i] = x[(t * gridDim.y + h) * width + i] + b[h * width + i];
        }
        void run(float* x, float* b, float* y) {
          const int tokens = 32, width = 768;
          int heads = 4;
          dim3 grid(tokens, heads);
          add<<<grid, 256>>>(x, b, y, width);
        }""",
        tmp_path,
    )
    assert {name: found.params[name].default for name in ("tokens", "heads")} == {
        "tokens": 32,
        "heads": 4,
    }
    main = found.variants["main"]
    assert main.launches[0].grid == ["tokens", "heads"]
    assert main.inputs["x"].shape == main.outputs["y"].shape == ["tokens", "heads", "width"]


def test_a_struct_of_many_pointers_gets_an_array_for_each(tmp_path: Path) -> None:
    source = """struct Levels { const float* at[16]; float* out; int n; };
    __global__ void k(Levels p) {
      int i = threadIdx.x;
      if (i < p.n) p.out[i] = p.at[0][i] + p.at[15][i];
    }"""
    found = drafted(source, tmp_path).variants["main"]
    assert {"p_at_0", "p_at_15"} <= found.inputs.keys()


def test_comparisons_longer_than_a_spec_has_are_no_fault(tmp_path: Path) -> None:
    a, b = "rows_" * 12, "columns_" * 7
    source = f"""__global__ void k(const float* x, float* y, int {a}n, int {b}n) {{
      for (int i = threadIdx.x; i < {a}n * {b}n; i += blockDim.x) y[i] = x[i];
    }}"""
    assert len(drafted(source, tmp_path).params) == 2


def test_a_pointer_to_a_librarys_number_is_an_argument_of_a_template(tmp_path: Path) -> None:
    source = """#include <torch/extension.h>
    template <typename T, typename S> __global__ void k(const T* x, T* y, S scale, int n) {
      int i = threadIdx.x;
      if (i < n) y[i] = x[i], scale[i] = __float2half_rn(1.0f);
    }
    void host(torch::Tensor x, torch::Tensor y, torch::Tensor s, int n) {
      DISPATCH(x.scalar_type(), "k", [&] {
        k<scalar_t, at::Half *><<<1, n>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(),
                                          s.data_ptr<at::Half>(), n);
      });
    }"""
    main = drafted(source, tmp_path).variants["main"]
    assert main.launches[0].kernel == "k<float, at::Half *>"
    assert main.outputs["scale"].dtype == "float16"


def test_states_of_random_generators_have_as_many_rows_as_the_kernel_indexes(
    tmp_path: Path,
) -> None:
    found = drafted(
        """#include <curand_kernel.h>
        __global__ void init(curandState* states, curandStatePhilox4_32_10_t* others, int n) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) { curand_init(1, i, 0, &states[i]); curand_init(1, i, 0, others + i); }
        }""",
        tmp_path,
    ).variants["main"]
    shapes = {name: (one.dtype, one.shape) for name, one in found.inout.items()}
    assert shapes == {"states": ("uint8", ["n", 48]), "others": ("uint8", ["n", 64])}


def test_leading_dimensions_of_a_warps_matrices_are_multiples_of_16(tmp_path: Path) -> None:
    text = """#include <mma.h>
    using namespace nvcuda::wmma;
    __global__ void k(const half* a, const half* b, float* c, int n, int depth) {
      fragment<matrix_a, 16, 16, 16, half, row_major> fa;
      fragment<matrix_b, 16, 16, 16, half, col_major> fb;
      fragment<accumulator, 16, 16, 16, float> sum;
      fill_fragment(sum, 0.0f);
      for (int i = 0; i < depth; i += 16) {
        load_matrix_sync(fa, a + i, depth);
        load_matrix_sync(fb, b + blockIdx.x * 16 * depth + i, depth);
        mma_sync(sum, fa, fb, sum);
      }
      store_matrix_sync(c + blockIdx.x * 16, sum, n, mem_row_major);
    }"""
    spec = drafted(text, tmp_path)
    assert (spec.params["n"].multiple_of, spec.params["depth"].multiple_of) == (16, 16)
    variant = spec.variants["main"]
    assert (list(variant.inputs), list(variant.outputs)) == (["a", "b"], ["c"])


def test_complex_numbers_of_cuda_and_cufft_are_vectors_of_two(tmp_path: Path) -> None:
    found = drafted(
        """#include <cufft.h>
        __global__ void k(const cufftComplex* x, const cufftReal* s, cuDoubleComplex* y, int n) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) y[i] = make_cuDoubleComplex(x[i].x * s[i], x[i].y);
        }""",
        tmp_path,
    ).variants["main"]
    arrays = {
        name: (one.dtype, one.shape) for name, one in {**found.inputs, **found.outputs}.items()
    }
    assert arrays["x"] == ("float32", ["n", 2])
    assert arrays["s"] == ("float32", ["n"])
    assert arrays["y"] == ("float64", ["n", 2])


def test_a_number_for_a_parameter_of_an_enum_names_the_enum(tmp_path: Path) -> None:
    """A launch says the number by which the host knows it, which is no value of the enum."""
    (tmp_path / "k.cu").write_text(f"""enum Way {{ UP, DOWN }};
    template <typename T, Way WAY> __global__ void k(const T* from, T* to, int n) {{ {COPY} }}
    void run(const float* from, float* to, int n) {{
      const Way way = DOWN;
      k<float, way><<<1, 64>>>(from, to, n);
    }}""")
    found = drafts_of(tmp_path / "k.cu")
    assert not isinstance(found, Unread)
    (draft,) = found[0]
    assert draft.instance == "k<float, Way(1)>"


def test_a_cast_of_a_name_that_the_host_alone_knows_is_no_argument(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(f"""
    template <typename T, int WIDE> __global__ void k(const T* from, T* to, int n) {{ {COPY} }}
    template <typename F> void each(F run) {{ run(Constant<4>()); }}
    void all(const float* from, float* to, int n) {{
      each([&](auto wide) {{ k<float, int(wide)><<<1, 64>>>(from, to, n); }});
    }}""")
    found = drafts_of(tmp_path / "k.cu")
    assert not isinstance(found, Unread)
    (draft,) = found[0]
    assert draft.instance == "k<float, 4>"
