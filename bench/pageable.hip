// `pageable TO FROM`: seconds to copy TO bytes to the GPU and FROM bytes back, from and to ordinary
// memory that was touched before; the median of five.
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>

static void check(hipError_t error, const char* call) {
  if (error == hipSuccess) return;
  fprintf(stderr, "%s: %s\n", call, hipGetErrorString(error));
  exit(1);
}

static double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t to = strtoull(argv[1], nullptr, 10), from = strtoull(argv[2], nullptr, 10);
  const size_t most = std::max(to, from);
  char* host = static_cast<char*>(malloc(most));
  memset(host, 1, most);
  void* device;
  check(hipMalloc(&device, most), "hipMalloc");
  double seconds[5];
  for (double& one : seconds) {
    const double begin = now();
    check(hipMemcpy(device, host, to, hipMemcpyHostToDevice), "hipMemcpy");
    check(hipMemcpy(host, device, from, hipMemcpyDeviceToHost), "hipMemcpy");
    one = now() - begin;
  }
  std::sort(seconds, seconds + 5);
  printf("%.6f\n", seconds[2]);
  return 0;
}
