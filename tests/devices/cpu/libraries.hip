// Device parts of hipRAND and thrust; expected values are in test_libraries.py.
#include <hip/hip_runtime.h>
#include <curand_kernel.h>
#include <hiprand/hiprand_kernel.h>
#include <thrust/complex.h>
#include <thrust/device_vector.h>
#include <thrust/tuple.h>

// Rows: raw numbers, then uniform ones, four at a time, doubles, normal ones.
template <class State>
__global__ void random_numbers(const unsigned long long* starts, unsigned* raw, float* floats,
                               double* doubles, int n) {
  const int i = threadIdx.x;
  State state;
  const auto restart = [&] { hiprand_init(starts[3 * i], starts[3 * i + 1], starts[3 * i + 2], &state); };
  restart();
  for (int k = 0; k < 6; k++) raw[k * n + i] = hiprand(&state);
  skipahead(1000003ull, &state);
  raw[6 * n + i] = hiprand(&state);
  skipahead_sequence(3ull, &state);
  raw[7 * n + i] = hiprand(&state);
  restart(), floats[i] = hiprand_uniform(&state);
  const float4 four = hiprand_uniform4(&state);
  for (int k = 0; k < 4; k++) floats[(1 + k) * n + i] = four.data[k];
  restart();
  for (int k = 0; k < 3; k++) floats[(5 + k) * n + i] = hiprand_normal(&state);
  restart(), floats[8 * n + i] = hiprand_normal4(&state).w;
  restart(), floats[9 * n + i] = hiprand_log_normal(&state, 0.5f, 2.0f);
  restart(), doubles[i] = hiprand_uniform_double(&state);
  restart();
  doubles[n + i] = hiprand_normal_double(&state), doubles[2 * n + i] = hiprand_normal_double(&state);
}

// A line of numbers a start, in the order of tests/devices/cpu/curand_numbers.txt.
template <class State>
__global__ void cuda_random_numbers(const unsigned long long* starts, double* out) {
  const int i = threadIdx.x;
  double* next = out + 19 * i;
  State state;
  const auto restart = [&] { curand_init(starts[3 * i], starts[3 * i + 1], starts[3 * i + 2], &state); };
  restart();
  for (int k = 0; k < 6; k++) *next++ = curand(&state);
  skipahead(1000003ull, &state), *next++ = curand(&state);
  skipahead_sequence(3ull, &state), *next++ = curand(&state);
  restart();
  for (int k = 0; k < 3; k++) *next++ = curand_uniform(&state);
  restart();
  for (int k = 0; k < 3; k++) *next++ = curand_normal(&state);
  restart();
  for (int k = 0; k < 2; k++) *next++ = curand_uniform_double(&state);
  restart();
  for (int k = 0; k < 2; k++) *next++ = curand_normal_double(&state);
  restart(), *next = curand_log_normal(&state, 0.5f, 0.25f);
}

__global__ void complex_numbers(const float2* in, float2* out, int n) {
  using Complex = thrust::complex<float>;
  const int i = threadIdx.x;
  const Complex a(in[i].x, in[i].y), b(in[n + i].x, in[n + i].y);
  float2* next = out + i;
  const auto put = [&](Complex z) { *next = float2(z.real(), z.imag()), next += n; };
  put(a + b), put(a - 2.0f), put(a * b), put(a / b), put(1.0f / a), put(-a);
  put(thrust::conj(a)), put(Complex(thrust::abs(a), thrust::norm(b))), put(thrust::exp(a));
  put(thrust::sqrt(b)), put(thrust::polar(2.0f, 0.5f)), put(thrust::pow(a, 2.0f));
  Complex c = a;
  c *= b, c += 1.0f, c -= a;
  put(c), put(Complex(float(a == a), float(a != a)));
}

struct Halves {
  __device__ int operator()(int x) const { return x / 2; }
};
__global__ void thread_algorithms(const int* in, int* out) {
  int own[8];
  thrust::copy(thrust::seq, in, in + 8, own);
  thrust::sort(thrust::seq, own, own + 8);
  for (int k = 0; k < 8; k++) out[k] = own[k];
  thrust::sort(thrust::seq, own, own + 8, thrust::greater<int>());
  const thrust::pair<int, int> ends = thrust::make_pair(own[0], own[7]);
  int low, high;
  thrust::tie(low, high) = thrust::make_tuple(ends.second, ends.first);
  out[8] = low, out[9] = high;
  out[10] = thrust::reduce(thrust::seq, own, own + 8);
  out[11] = thrust::reduce(thrust::seq, own, own + 8, 0, thrust::maximum<int>());
  out[12] = thrust::get<1>(thrust::tuple<int, int>(3, 4)) + thrust::plus<int>()(1, 2);
  thrust::transform(thrust::seq, in, in + 8, own, Halves());
  out[13] = own[3];
  const thrust::device_ptr<const int> address(in);
  out[15] = *(address + 1) + address[2] + *thrust::raw_pointer_cast(address);
  out[14] = int(thrust::count(thrust::seq, in, in + 8, in[0]));
}
