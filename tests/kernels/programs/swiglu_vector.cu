// Gated SiLU on vectors of four, a functor as a template argument.
#include <pybind11/pybind11.h>
#include <hip/hip_runtime.h>

namespace py = pybind11;
using namespace py::literals;

struct Silu {
  __device__ float operator()(float x) const { return x / (1.f + __expf(-x)); }
};
struct Relu {
  __device__ float operator()(float x) const { return x > 0.f ? x : 0.f; }
};

template <class Act>
__global__ void gated(const float4* __restrict__ gate, const float4* __restrict__ up, float4* out, int n) {
  Act act;
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) {
    const float4 g = gate[i], u = up[i];
    out[i] = make_float4(act(g.x) * u.x, act(g.y) * u.y, act(g.z) * u.z, act(g.w) * u.w);
  }
}

void swiglu(py::object gate, py::object up, py::object out, int n) {
  auto pointer = [](py::object o) { return reinterpret_cast<float4*>(o.attr("data_ptr")().cast<size_t>()); };
  gated<Silu><<<(n / 4 + 255) / 256, 256>>>(pointer(gate), pointer(up), pointer(out), n / 4);
}
PYBIND11_MODULE(swiglu, m) { m.def("swiglu", &swiglu, "gate"_a, "up"_a, "out"_a, "n"_a); }
