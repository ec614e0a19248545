// Kernels of bitsandbytes 0.50.2, declared as its library names them; they are executed out of the library.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#define NAME(rocm) "bitsandbytes/libbitsandbytes_rocm" #rocm ".so"
#define LIBRARY(rocm) NAME(rocm)
TOKITAI_MACHINE_CODE(LIBRARY(ROCM));

template <typename T, int TILE, int THREADS, int EACH, int KIND>
__global__ void kDequantizeBlockwise(float* code, unsigned char* a, float* absmax, T* out, int blocksize,
                                     int n) {}

template <int EACH, int THREADS>
__global__ void kdequant_mm_int32_fp16(int* a, float* row_stats, float* column_stats, __half* out,
                                       __half* bias, int rows, int columns, int n) {}

template <typename T, int THREADS, int SPARSE>
__global__ void kInt8VectorQuant(T* a, signed char* out, float* row_stats, float threshold, int rows,
                                 int columns) {}

template <typename T, int OPTIMIZER>
__global__ void kOptimizer32bit1State(T* g, T* p, float* state1, float* unorm, float max_unorm,
                                      float param_norm, float beta1, float beta2, float eps,
                                      float weight_decay, int step, float lr, float gnorm_scale,
                                      bool skip_zeros, int n) {}

template <typename T, int OPTIMIZER>
__global__ void kOptimizer32bit2State(T* g, T* p, float* state1, float* state2, float* unorm,
                                      float max_unorm, float param_norm, float beta1, float beta2,
                                      float beta3, float alpha, float eps, float weight_decay, int step,
                                      float lr, float gnorm_scale, bool skip_zeros, int n) {}

template <typename T, int BLOCK, int EACH, int STOCHASTIC, int KIND>
__global__ void kQuantizeBlockwise(float* code, T* a, float* absmax, unsigned char* out, float* rand,
                                   int rand_offset, int n) {}

template <typename T, int THREADS, int BITS>
__global__ void kgemm_4bit_inference_naive(int m, int n, int k, T* a, unsigned char* b, float* absmax,
                                           const float* datatype, T* out, int lda, int ldb, int ldc,
                                           int blocksize) {}
