// Types and functions of the headers beside <hip/hip_runtime.h>; expected values are in test_numbers.py.
#include <hip/hip_bf16.h>
#include <hip/hip_complex.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_math_constants.h>
#include <hip/hip_runtime.h>
#include <hip/hip_vector_types.h>

// --- a source's own functions go before ours ---------------------------------------------------------
__device__ float4 operator+(const float4& a, const float4& b) { return make_float4(1, a.y, b.z, 4); }
__device__ void operator+=(int3& a, int3 b) { a.x = 100 + b.x; }
__device__ float2 operator*(float2 a, float b) { return make_float2(a.x + b, 0); }
__device__ double atomicAdd(double* address, double value) { return *address = 7 * value; }
__device__ int min(int a, int b) { return 1000 + (a < b ? a : b); }
__device__ float __saturatef(float x) { return 2 * x; }
__device__ __half operator*(__half a, __half b) { return __half(float(a) + 10); }
__device__ uint2 make_uint2(unsigned x, unsigned y) { return uint2(y, x); }

__global__ void own_functions(float* out, double* cell) {
  const float4 a = make_float4(1, 2, 3, 4) + make_float4(5, 6, 7, 8);
  int3 b = make_int3(1, 2, 3);
  b += make_int3(5, 5, 5);
  out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w, out[4] = b.x, out[5] = b.y;
  out[6] = (make_float2(1, 2) * 3.0f).x;
  out[7] = min(5, 6), out[8] = __saturatef(4), out[9] = __half(2.0f) * __half(3.0f);
  out[10] = make_uint2(1, 2).x;
  out[11] = min(2.5f, 1.5f);  // ours, as the source has none of floats
  out[12] = max(short(3), 2.5);
  atomicAdd(cell, 1.0);
}

// --- vectors -------------------------------------------------------------------------------------
__constant__ float4 constant_vectors[2] = {{1, 2, 3, 4}, {5.0, 6, 7, 8}};
static_assert(sizeof(float3) == 12 && alignof(float4) == 16 && alignof(double4) == 32, "layout");

__global__ void vector_functions(float* out) {
  HIP_DYNAMIC_SHARED(float4, dynamic_vectors)
  __shared__ float2 fixed_vectors[2];
  dynamic_vectors[hipThreadIdx_x] = constant_vectors[1];
  fixed_vectors[1] = float2(3, 4);
  float3 a(1, 2, 3), b{4.0, 5, 6};
  uchar4 bytes(255, 1, 2, 3);
  bytes = bytes + 1;
  int4 whole = int4(7) % int4(4, 3, 2, 5);
  whole <<= 2;
  whole++;
  a = -a * b + 0.5f, a.data[2] -= 1;
  int i = 0;
  for (float value : a.data) out[i++] = value;
  for (int value : bytes.data) out[i++] = value;
  for (int value : whole.data) out[i++] = value;
  for (float value : dynamic_vectors[0].data) out[i++] = value;
  out[i++] = fixed_vectors[1].y;
  out[i++] = (2 / double2(4, 8)).y;
  out[i++] = (int2(1, 2) == int2(1, 2)) + 2 * (int2(1, 2) != int2(1, 3)) + 4 * ((~int1(5)).x == -6);
  out[i++] = hipBlockDim_x * 100 + hipGridDim_x;
}

// --- 16 bits -------------------------------------------------------------------------------------
// For each element two rows of bits a function: of one value, and of a pair's second one.
template <class T, class T2>
__device__ void sixteen_bits(const T* a, const T* b, const T* c, T* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const T x = a[i], y = b[i], z = c[i];
  const T2 xx(y, x), yy(x, y), zz(x, z);
  T* next = out + i;
  const auto put = [&](T one, T2 two) { *next = one, next[n] = two.y, next += 2 * n; };
  const auto told = [&](bool one, T2 two, bool both) {
    put(T(float(one)), two), put(T(float(both)), two);
  };
  put(__hadd(x, y), __hadd2(xx, yy));
  put(__hsub_rn(x, y), __hsub2(xx, yy));
  put(__hmul(x, y), __hmul2_rn(xx, yy));
  put(x / y, xx / yy);
  put(__hfma(x, y, z), __hfma2(xx, yy, zz));
  put(-x, __hneg2(xx));
  put(__habs(x), __habs2(xx));
  put(__hmax(x, y), __hmax2(xx, yy));
  put(__hmin(x, y), __hmin2(xx, yy));
  put(hceil(x), h2ceil(xx));
  put(hfloor(x), h2floor(xx));
  put(htrunc(x), h2trunc(xx));
  put(hrint(x), h2rint(xx));
  put(hsqrt(x), h2sqrt(xx));
  put(hrcp(x), h2rcp(xx));
  put(hexp(x), h2exp(xx));
  put(hlog2(x), h2log2(xx));
  put(hcos(x), h2cos(xx));
  told(__heq(x, y), __heq2(xx, yy), __hbeq2(xx, yy));
  told(__hneu(x, y), __hneu2(xx, yy), __hbneu2(xx, yy));
  told(__hlt(x, y), __hlt2(xx, yy), __hblt2(xx, yy));
  told(__hleu(x, y), __hleu2(xx, yy), __hbleu2(xx, yy));
  told(__hgt(x, y), __hgt2(xx, yy), __hbgt2(xx, yy));
  told(__hgeu(x, y), __hgeu2(xx, yy), __hbgeu2(xx, yy));
  told(__hisnan(x), __hisnan2(xx), __hisinf(x) != 0);
}
__global__ void half_pairs(const __half* a, const __half* b, const __half* c, __half* out, int n) {
  sixteen_bits<__half, __half2>(a, b, c, out, n);
}
__global__ void bfloat16_pairs(const __hip_bfloat16* a, const __hip_bfloat16* b,
                               const __hip_bfloat16* c, __hip_bfloat16* out, int n) {
  sixteen_bits<__hip_bfloat16, __hip_bfloat162>(a, b, c, out, n);
}

__global__ void pair_moves(const float* in, float* out, __hip_bfloat162* sums) {
  const __hip_bfloat162 v = __floats2bfloat162_rn(in[0], in[1]);
  const __hip_bfloat162 w = __halves2bfloat162(__high2bfloat16(v), __low2bfloat16(v));
  const float2 f = __bfloat1622float2(__lowhigh2highlow(__lows2bfloat162(v, w)));
  out[0] = f.x, out[1] = f.y;
  out[2] = __low2float(__highs2bfloat162(v, w));
  out[3] = __bfloat16_as_ushort(HIPRT_INF_BF16);
  out[4] = float(__short_as_bfloat16(0x4040));
  out[5] = __float2half_rz(in[2]), out[6] = __float2half_ru(in[2]), out[7] = __float2half_rd(in[2]);
  unsafeAtomicAdd(sums, v);
  atomicAdd(sums, v);
  __half one(1.0f);
  const __half old = one++;
  out[8] = float(old) + 10 * float(--one);
}

// --- 8 bits --------------------------------------------------------------------------------------
__global__ void decode_fp8(float* out, __half* halves) {
  const int code = threadIdx.x;
  __hip_fp8_e4m3 a;
  __hip_fp8_e5m2 b;
  __hip_fp8_e4m3_fnuz c;
  __hip_fp8_e5m2_fnuz d;
  a.__x = b.__x = c.__x = d.__x = (__hip_fp8_storage_t)code;
  out[code] = a, out[256 + code] = b, out[512 + code] = c, out[768 + code] = d;
  for (int t = 0; t < 4; t++)
    halves[256 * t + code] = __hip_cvt_fp8_to_halfraw((__hip_fp8_storage_t)code,
                                                      __hip_fp8_interpretation_t(t));
}
// Rows: the formats without saturation, then with it.
__global__ void encode_fp8(const __half* in, unsigned char* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int row = 0; row < 8; row++)
    out[row * n + i] = __hip_cvt_halfraw_to_fp8(in[i], __hip_saturation_t(row / 4),
                                                __hip_fp8_interpretation_t(row % 4));
}
__global__ void fp8_from_floats(const float* in, unsigned char* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __hip_fp8_e4m3 a(in[i]);
  const __hip_fp8_e5m2_fnuz b(in[i]);
  const __hip_fp8x4_e4m3_fnuz c(float4(in[i], 1, in[i], -2));
  out[i] = a.__x, out[n + i] = b.__x, out[2 * n + i] = (unsigned char)(c.__x >> 16);
  const float4 back = c;
  const __hip_fp8x2_e4m3 pair(float2(back.y, back.w));
  out[3 * n + i] = (unsigned char)(pair.__x >> 8) ^ (unsigned char)int(a);
}

// --- complex numbers, constants, directions ----------------------------------------------------------
__global__ void complex_functions(const float2* a, const float2* b, float2* out) {
  out[0] = hipCaddf(a[0], b[0]), out[1] = hipCsubf(a[0], b[0]), out[2] = hipCmulf(a[0], b[0]);
  out[3] = hipCdivf(a[0], b[0]), out[4] = hipConjf(a[0]), out[5] = hipCfmaf(a[0], b[0], a[0]);
  out[6] = make_hipComplex(hipCabsf(a[0]), hipCsqabsf(b[0]));
  const hipDoubleComplex wide = hipCmul(hipComplexFloatToDouble(a[0]), make_hipDoubleComplex(2, 1));
  out[7] = hipComplexDoubleToFloat(wide);
}
__global__ void constants(double* out) {
  out[0] = HIP_PI_F, out[1] = HIP_PI, out[2] = HIP_PI_LO, out[3] = HIP_LN2_F, out[4] = HIP_L2E;
  out[5] = HIP_INF_F, out[6] = HIP_SQRT_HALF, out[7] = HIP_LGE_LO, out[8] = HIP_MAX_NORMAL_F;
}
__global__ void directed(const float* a, const float* b, float* out, double* wide, int n) {
  const int i = threadIdx.x;
  const float x = a[i], y = b[i];
  float* next = out + i;
  const auto put = [&](float value) { *next = value, next += n; };
  put(__fadd_rd(x, y)), put(__fadd_ru(x, y)), put(__fadd_rz(x, y));
  put(__fmul_rd(x, y)), put(__fmul_ru(x, y)), put(__fmul_rz(x, y));
  put(__fdiv_rd(x, y)), put(__fdiv_ru(x, y)), put(__fdiv_rz(x, y));
  put(__fsqrt_rd(fabsf(x))), put(__fsqrt_ru(fabsf(x))), put(__fsqrt_rz(fabsf(x)));
  put(__double2float_rd(double(x) * y)), put(__double2float_ru(double(x) * y));
  wide[i] = __dadd_rd(x, 1e-30), wide[n + i] = __ddiv_ru(x, y);
}
__global__ void directed_integers(const long long* in, float* out, double* wide, int n) {
  const int i = threadIdx.x;
  const long long x = in[i];
  out[i] = __ll2float_rd(x), out[n + i] = __ll2float_ru(x), out[2 * n + i] = __ll2float_rz(x);
  out[3 * n + i] = __int2float_rd(int(x)), out[4 * n + i] = __uint2float_ru(unsigned(x));
  wide[i] = __ll2double_rd(x), wide[n + i] = __ull2double_ru((unsigned long long)x);
}

// --- special functions -------------------------------------------------------------------------------
__global__ void special(const double* in, double* out, float* singles, int n) {
  const int i = threadIdx.x;
  const double x = in[i];
  double* next = out + i;
  const auto put = [&](double value) { *next = value, next += n; };
  put(erfinv(x)), put(erfcinv(1 - x)), put(normcdfinv((1 + x) / 2)), put(erfcinv(1e-200));
  put(cyl_bessel_i0(9 * x)), put(cyl_bessel_i1(9 * x)), put(norm(n, in)), put(rnorm4d(x, 1, 2, 3));
  singles[i] = erfinvf(float(x)), singles[n + i] = erfcxf(float(x)), singles[2 * n + i] = powif(2.5f, i - 3);
  singles[3 * n + i] = rnorm3df(float(x), 2, 3);
  singles[4 * n + i] = __hadd(i, -4) + 1000 * __rhadd(i, -4);
  singles[5 * n + i] = __uhadd(0xffffffffu, 0xfffffff1u) == 0xfffffff8u && __usad(3u, 5u, 1u) == 3u &&
                       __bitextract_u32(0xabcd1234u, 8, 12) == 0xd12u &&
                       __bitinsert_u32(0xabcd1234u, 0xfffu, 8, 8) == 0xabcdff34u &&
                       __bitextract_u64(0xabcd123400000000ull, 40, 8) == 0x12ull;
}

// --- builtins ------------------------------------------------------------------------------------
__noinline__ __device__ int half_of(int x) {
  __builtin_assume(x > 0);
  return x / 2;
}
__global__ void builtins(const int* in, int* out, int n) {
  const int i = __builtin_amdgcn_workitem_id_x(), x = in[i];
  int* next = out + i;
  const auto put = [&](int value) { *next = value, next += n; };
  put(half_of(__builtin_nontemporal_load(in + i)));
  put(__builtin_amdgcn_readfirstlane(x));
  put(__builtin_amdgcn_readlane(x, 5));
  put(__builtin_amdgcn_ds_bpermute(4 * (i ^ 1), x));
  put(__builtin_amdgcn_ds_swizzle(x, 0x041f));                        // xor with 1
  put(__builtin_amdgcn_update_dpp(-1, x, 0x111, 0xf, 0xf, false));    // row_shr:1
  put(__builtin_amdgcn_mov_dpp(x, 0x1b, 0xf, 0xf, true));             // quad_perm:[3,2,1,0]
  put(__builtin_amdgcn_update_dpp(-1, x, 0x140, 0xf, 0x5, false));    // row_mirror in banks 0 and 2
  put(int(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 100))));
  put(__builtin_amdgcn_sdot4(x, 0x01ff02fe, 10, false));
  put(int(__builtin_amdgcn_udot4(unsigned(x), 0x01ff02feu, 10, false)));
  put(__builtin_amdgcn_sudot4(true, x, false, 0x01ff02fe, 10, false));
  put(__builtin_amdgcn_sdot4(0x7f7f7f7f, 0x7f7f7f7f, 2147483647, true));
  put(int(__builtin_amdgcn_perm(unsigned(x), 0x8899aabbu, 0x0c0d0700u + 0x03)));
  put(__builtin_amdgcn_sbfe(x, 4, 5));
  put(int(__builtin_amdgcn_ubfe(unsigned(x), 4, 5)));
  put(int(__builtin_amdgcn_alignbit(unsigned(x), 0x12345678u, 12)));
  put(__dp4a(x, x, 1));
  put(int(1000 * __builtin_amdgcn_fmed3f(float(x), 2.0f, 5.5f)));
}
__global__ void ordered_atomics(int* cells, float* sum) {
#define AT __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  __hip_atomic_fetch_add(&cells[0], 2, AT);
  __hip_atomic_fetch_max(&cells[1], t, AT);
  __hip_atomic_fetch_min(&cells[2], -t, AT);
  __hip_atomic_fetch_or(&cells[3], 1 << t % 8, AT);
  __hip_atomic_store(&cells[4], 9, AT);
  int expected = __hip_atomic_load(&cells[5], AT);
  while (!__hip_atomic_compare_exchange_strong(&cells[5], &expected, expected + 3, __ATOMIC_RELAXED,
                                               AT)) {
  }
  __hip_atomic_fetch_add(sum, 0.5f, AT);
}
