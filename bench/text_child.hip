// A child of the kind that speaks text: reads the sizes and two matrices of float16 bits as decimal
// numbers, runs the product, writes its bits as decimal numbers. Here to be measured against.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "../kernels/gemm_bw.hip"

static void check(hipError_t error, const char* call) {
  if (error == hipSuccess) return;
  fprintf(stderr, "%s: %s\n", call, hipGetErrorString(error));
  exit(1);
}

static void read_bits(std::vector<unsigned short>& bits) {
  for (unsigned short& one : bits)
    if (scanf("%hu", &one) != 1) exit(2);
}

int main() {
  int m, n, k;
  if (scanf("%d %d %d", &m, &n, &k) != 3) return 2;
  std::vector<unsigned short> grad_c(size_t(m) * n), b(size_t(k) * n), grad_a(size_t(m) * k);
  read_bits(grad_c);
  read_bits(b);
  __half *device_c, *device_b, *device_a;
  check(hipMalloc((void**)&device_c, grad_c.size() * 2), "hipMalloc");
  check(hipMalloc((void**)&device_b, b.size() * 2), "hipMalloc");
  check(hipMalloc((void**)&device_a, grad_a.size() * 2), "hipMalloc");
  check(hipMemcpy(device_c, grad_c.data(), grad_c.size() * 2, hipMemcpyHostToDevice), "hipMemcpy");
  check(hipMemcpy(device_b, b.data(), b.size() * 2, hipMemcpyHostToDevice), "hipMemcpy");
  hipLaunchKernelGGL(gemm_bw_grad_a_fp16_f32_kernel, dim3(m / 16, k / 16), dim3(16, 16), 0, 0, device_c,
                     device_b, device_a, m, n, k);
  check(hipGetLastError(), "launch");
  check(hipMemcpy(grad_a.data(), device_a, grad_a.size() * 2, hipMemcpyDeviceToHost), "hipMemcpy");
  for (unsigned short one : grad_a) printf("%u\n", one);
  return 0;
}
