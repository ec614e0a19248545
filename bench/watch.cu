// Runs kernels of one file of tests/devices/sanitizers/suite, one after the other, for `python -m bench.watch`:
//
//   program FIRST SECONDS
//
// FIRST is the number of the first kernel in the table that is compiled in (KERNELS). Of each it prints "begin NUMBER" and
// "end NUMBER ERROR"; it ends behind an error, which leaves no context, and with "hung NUMBER" where a kernel takes longer.
#include <string.h>

// HIP's device code has it, CUDA's has not.
__device__ inline void* moved(void* to, const void* from, size_t bytes) {
  const auto source = static_cast<const char*>(from);
  const auto target = static_cast<char*>(to);
  if (target < source)
    for (size_t i = 0; i < bytes; i++) target[i] = source[i];
  else
    for (size_t i = bytes; i-- > 0;) target[i] = source[i];
  return to;
}
#define memmove moved
#include SUITE_FILE
#undef memmove

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

using Kernel = void (*)(const float*, float*, float*, int*, int);

struct Entry {
  Kernel kernel;
  unsigned grid, block, shared;
  bool cooperative;
};

static const Entry kernels[] = {
#include KERNELS
};

static constexpr int elements = 64;
static std::atomic<int> current{-1};

static void* allocated(size_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) exit(2);
  return memory;
}

static void stop_what_hangs(double seconds) {
  int seen = -1;
  auto since = std::chrono::steady_clock::now();
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto now = std::chrono::steady_clock::now();
    if (seen != current) {
      seen = current;
      since = now;
    } else if (seen >= 0 && std::chrono::duration<double>(now - since).count() > seconds) {
      printf("hung %d\n", seen);
      fflush(stdout);
      _exit(4);
    }
  }
}

static cudaError_t run(const Entry& one) {
  std::vector<float> drawn(elements);
  for (int i = 0; i < elements; i++) drawn[i] = float((i * 37) % elements) / 8.0f - 3.0f;
  auto x = static_cast<float*>(allocated(elements * sizeof(float)));
  auto y = static_cast<float*>(allocated(elements * sizeof(float)));
  auto ws = static_cast<float*>(allocated(4 * elements * sizeof(float)));
  auto flags = static_cast<int*>(allocated(elements * sizeof(int)));
  cudaMemcpy(x, drawn.data(), elements * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(y, 0, elements * sizeof(float));
  cudaMemset(flags, 0, elements * sizeof(int));
  int n = elements;
  void* arguments[] = {&x, &y, &ws, &flags, &n};
  const auto kernel = reinterpret_cast<const void*>(one.kernel);
  cudaError_t error =
      one.cooperative
          ? cudaLaunchCooperativeKernel(kernel, dim3(one.grid), dim3(one.block), arguments, one.shared, 0)
          : cudaLaunchKernel(kernel, dim3(one.grid), dim3(one.block), arguments, one.shared, 0);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  for (void* memory : {(void*)x, (void*)y, (void*)ws, (void*)flags}) cudaFree(memory);
  return error;
}

int main(int, char** words) {
  const int first = atoi(words[1]), count = sizeof(kernels) / sizeof(kernels[0]);
  std::thread(stop_what_hangs, atof(words[2])).detach();
  if (cudaFree(nullptr) != cudaSuccess) return 2;
  for (int i = first; i < count; i++) {
    printf("begin %d\n", i);
    fflush(stdout);
    current = i;
    const cudaError_t error = run(kernels[i]);
    printf("end %d %s\n", i, cudaGetErrorName(error));
    fflush(stdout);
    if (error != cudaSuccess) _exit(1);
  }
  current = -1;
  fflush(stdout);
  return 0;
}
