// What kernels of PyTorch extensions use of its headers, where these are not installed: c10's 16-bit
// floats, accumulation types, device math under c10's names, launch macros and warp shuffles. Its host
// side (dispatch, streams, what makes tensors) is left out with the host code. After PyTorch's public interface:
// c10/util/Half.h, c10/util/BFloat16.h, ATen/AccumulateType.h, ATen/OpMathType.h,
// c10/cuda/CUDAMathCompat.h, c10/macros/Macros.h, ATen/cuda/DeviceUtils.cuh.
#pragma once

#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#define TOKITAI_TORCH __host__ __device__ inline

namespace c10 {

struct alignas(2) Half {
  unsigned short x;
  Half() = default;
  __host__ __device__ Half(float value) : x(bits(__float2half(value))) {}
  __host__ __device__ Half(__half value) : x(bits(value)) {}
  __host__ __device__ operator float() const { return __half2float(operator __half()); }
  __host__ __device__ operator __half() const {
    __half_raw raw;
    raw.x = x;
    return __half(raw);
  }

 private:
  __host__ __device__ static unsigned short bits(__half value) { return __half_raw(value).x; }
};

struct alignas(2) BFloat16 {
  unsigned short x;
  BFloat16() = default;
  __host__ __device__ BFloat16(float value) {
    union {
      float value;
      unsigned bits;
    } as = {value};
    const unsigned rounded = (as.bits + 0x7fffu + (as.bits >> 16 & 1)) >> 16;
    x = (unsigned short)(value != value ? 0x7fc0u : rounded);
  }
  __host__ __device__ operator float() const {
    union {
      unsigned bits;
      float value;
    } as = {unsigned(x) << 16};
    return as.value;
  }
};

// Two of them give one, with a float or double they give that.
#define TOKITAI_TORCH_OPERATOR(T, OP)                                                             \
  TOKITAI_TORCH T operator OP(T a, T b) { return T(float(a) OP float(b)); }                       \
  TOKITAI_TORCH T& operator OP##=(T& a, T b) { return a = a OP b; }                               \
  TOKITAI_TORCH float operator OP(T a, float b) { return float(a) OP b; }                         \
  TOKITAI_TORCH float operator OP(float a, T b) { return a OP float(b); }                         \
  TOKITAI_TORCH float& operator OP##=(float& a, T b) { return a = a OP float(b); }                \
  TOKITAI_TORCH double operator OP(T a, double b) { return float(a) OP b; }                       \
  TOKITAI_TORCH double operator OP(double a, T b) { return a OP float(b); }                       \
  TOKITAI_TORCH T operator OP(T a, int b) { return a OP T(float(b)); }                            \
  TOKITAI_TORCH T operator OP(int a, T b) { return T(float(a)) OP b; }                            \
  TOKITAI_TORCH T operator OP(T a, int64_t b) { return a OP T(float(b)); }                        \
  TOKITAI_TORCH T operator OP(int64_t a, T b) { return T(float(a)) OP b; }
#define TOKITAI_TORCH_COMPARISON(T, OP)                                                           \
  TOKITAI_TORCH bool operator OP(T a, T b) { return float(a) OP float(b); }
#define TOKITAI_TORCH_OPERATORS(T)                                                                \
  TOKITAI_TORCH T operator-(T a) { return T(-float(a)); }                                         \
  TOKITAI_TORCH_OPERATOR(T, +)                                                                    \
  TOKITAI_TORCH_OPERATOR(T, -)                                                                    \
  TOKITAI_TORCH_OPERATOR(T, *)                                                                    \
  TOKITAI_TORCH_OPERATOR(T, /)                                                                    \
  TOKITAI_TORCH_COMPARISON(T, ==)                                                                 \
  TOKITAI_TORCH_COMPARISON(T, !=)                                                                 \
  TOKITAI_TORCH_COMPARISON(T, <)                                                                  \
  TOKITAI_TORCH_COMPARISON(T, <=)                                                                 \
  TOKITAI_TORCH_COMPARISON(T, >)                                                                  \
  TOKITAI_TORCH_COMPARISON(T, >=)
TOKITAI_TORCH_OPERATORS(Half)
TOKITAI_TORCH_OPERATORS(BFloat16)
#undef TOKITAI_TORCH_OPERATORS
#undef TOKITAI_TORCH_COMPARISON
#undef TOKITAI_TORCH_OPERATOR

namespace cuda {
namespace compat {
#define TOKITAI_TORCH_ONE(NAME)                                                                   \
  TOKITAI_TORCH float NAME(float x) { return ::NAME##f(x); }                                      \
  TOKITAI_TORCH double NAME(double x) { return ::NAME(x); }
#define TOKITAI_TORCH_TWO(NAME, OF)                                                               \
  TOKITAI_TORCH float NAME(float x, float y) { return ::OF##f(x, y); }                            \
  TOKITAI_TORCH double NAME(double x, double y) { return ::OF(x, y); }
TOKITAI_TORCH_ONE(exp)
TOKITAI_TORCH_ONE(ceil)
TOKITAI_TORCH_ONE(floor)
TOKITAI_TORCH_ONE(log)
TOKITAI_TORCH_ONE(log1p)
TOKITAI_TORCH_ONE(sin)
TOKITAI_TORCH_ONE(cos)
TOKITAI_TORCH_ONE(tan)
TOKITAI_TORCH_ONE(tanh)
TOKITAI_TORCH_ONE(sqrt)
TOKITAI_TORCH_ONE(rsqrt)
TOKITAI_TORCH_TWO(max, fmax)
TOKITAI_TORCH_TWO(min, fmin)
TOKITAI_TORCH_TWO(pow, pow)
TOKITAI_TORCH_TWO(copysign, copysign)
#undef TOKITAI_TORCH_TWO
#undef TOKITAI_TORCH_ONE
TOKITAI_TORCH float abs(float x) { return ::fabsf(x); }
TOKITAI_TORCH double abs(double x) { return ::fabs(x); }
}  // namespace compat
}  // namespace cuda

}  // namespace c10

namespace std {
template <>
class numeric_limits<c10::Half> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, has_infinity = true;
  __host__ __device__ static c10::Half lowest() { return -65504.0f; }
  __host__ __device__ static c10::Half max() { return 65504.0f; }
  __host__ __device__ static c10::Half min() { return 0x1p-14f; }
  __host__ __device__ static c10::Half epsilon() { return 0x1p-10f; }
  __host__ __device__ static c10::Half infinity() { return INFINITY; }
  __host__ __device__ static c10::Half quiet_NaN() { return NAN; }
};
template <>
class numeric_limits<c10::BFloat16> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, has_infinity = true;
  __host__ __device__ static c10::BFloat16 lowest() { return -0x1.fep127f; }
  __host__ __device__ static c10::BFloat16 max() { return 0x1.fep127f; }
  __host__ __device__ static c10::BFloat16 min() { return 0x1p-126f; }
  __host__ __device__ static c10::BFloat16 epsilon() { return 0x1p-7f; }
  __host__ __device__ static c10::BFloat16 infinity() { return INFINITY; }
  __host__ __device__ static c10::BFloat16 quiet_NaN() { return NAN; }
};
}  // namespace std

namespace at {
using namespace c10;

template <class T>
struct OpMathType {
  using type = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;

template <class T, bool is_gpu>
struct AccumulateType {
  using wide = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int64_t, T>;
  using type = std::conditional_t<!is_gpu && std::is_same_v<T, float>, double, opmath_type<wide>>;
};
template <class T, bool is_gpu>
using acc_type = typename AccumulateType<T, is_gpu>::type;

template <class T>
struct numeric_limits {
  __host__ __device__ static T lowest() { return std::numeric_limits<T>::lowest(); }
  __host__ __device__ static T max() { return std::numeric_limits<T>::max(); }
  __host__ __device__ static T lower_bound() {
    if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
    else return std::numeric_limits<T>::lowest();
  }
  __host__ __device__ static T upper_bound() {
    if constexpr (std::numeric_limits<T>::has_infinity) return std::numeric_limits<T>::infinity();
    else return std::numeric_limits<T>::max();
  }
};

// Views of tensors that a launch passes by value: elements x[i][j] by sizes and strides.
template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
struct TensorAccessor {
  typename Traits<T>::PtrType data_;
  const Index *sizes_, *strides_;
  __host__ __device__ Index size(Index at) const { return sizes_[at]; }
  __host__ __device__ Index stride(Index at) const { return strides_[at]; }
  __host__ __device__ typename Traits<T>::PtrType data() const { return data_; }
  __host__ __device__ decltype(auto) operator[](Index at) const {
    if constexpr (N == 1)
      return (data_[strides_[0] * at]);
    else
      return TensorAccessor<T, N - 1, Traits, Index>{data_ + strides_[0] * at, sizes_ + 1, strides_ + 1};
  }
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
struct GenericPackedTensorAccessor {
  typename Traits<T>::PtrType data_;
  Index sizes_[N], strides_[N];
  __host__ __device__ Index size(Index at) const { return sizes_[at]; }
  __host__ __device__ Index stride(Index at) const { return strides_[at]; }
  __host__ __device__ typename Traits<T>::PtrType data() const { return data_; }
  __host__ __device__ decltype(auto) operator[](Index at) const {
    return TensorAccessor<T, N, Traits, Index>{data_, sizes_, strides_}[at];
  }
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, Index>;  // its name of before

// A tensor of the host's. Structs that a kernel takes may be made of some; nothing here makes one, so that
// its functions are declared and nowhere defined.
struct Tensor {
  template <class T> T* data_ptr() const;
  template <class T> const T* const_data_ptr() const;
  template <class T> T* mutable_data_ptr() const;
  void* data_ptr() const;
  bool defined() const;
  int64_t size(int64_t at) const;
  int64_t stride(int64_t at) const;
  int64_t dim() const;
  int64_t ndimension() const;
  int64_t numel() const;
  bool is_contiguous() const;
  bool is_cuda() const;
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, Traits> packed_accessor32() const;
  template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, Traits> packed_accessor64() const;
};
}  // namespace at

namespace torch {
using namespace at;
}
#ifndef TORCH_CHECK
#define TORCH_CHECK(...) ((void)0)
#endif

#ifndef C10_HOST_DEVICE
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_LIKELY(condition) (__builtin_expect(bool(condition), 1))
#define C10_UNLIKELY(condition) (__builtin_expect(bool(condition), 0))
#define C10_RESTRICT __restrict__
#define C10_WARP_SIZE warpSize
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(THREADS) __launch_bounds__(THREADS)
#define C10_LAUNCH_BOUNDS_2(THREADS, BLOCKS) __launch_bounds__(THREADS, BLOCKS)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#endif
#ifndef CUDA_KERNEL_LOOP
#define CUDA_KERNEL_LOOP_TYPE(i, n, T)                                                            \
  int64_t i##_wide = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;                              \
  for (T i = T(i##_wide); i##_wide < (n);                                                         \
       i##_wide += int64_t(blockDim.x) * gridDim.x, i = T(i##_wide))
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#endif

template <class T>
__device__ inline T gpuAtomicAdd(T* address, T value) {
  return atomicAdd(address, value);
}
template <class T>
__device__ inline void gpuAtomicAddNoReturn(T* address, T value) {
  atomicAdd(address, value);
}
template <class T>
__device__ inline T WARP_SHFL(T value, int lane, int width = warpSize, unsigned = ~0u) {
  return __shfl(value, lane, width);
}
template <class T>
__device__ inline T WARP_SHFL_XOR(T value, int lanes, int width = warpSize, unsigned = ~0u) {
  return __shfl_xor(value, lanes, width);
}
template <class T>
__device__ inline T WARP_SHFL_UP(T value, unsigned delta, int width = warpSize, unsigned = ~0u) {
  return __shfl_up(value, delta, width);
}
template <class T>
__device__ inline T WARP_SHFL_DOWN(T value, unsigned delta, int width = warpSize, unsigned = ~0u) {
  return __shfl_down(value, delta, width);
}
