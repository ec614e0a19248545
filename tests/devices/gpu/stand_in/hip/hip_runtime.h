// A HIP runtime without a GPU, for tests of the harness's GPU side: "device" memory is the host's own,
// kernels run as they do on the cpu device. What a real runtime may do wrong is asked for by
// environment variables:
//   TOKITAI_STAND_IN_FAIL=CALL:N:CODE   the Nth call of CALL gives that error
//   TOKITAI_STAND_IN_MEMORY=BYTES       size of the device's memory
//   TOKITAI_STAND_IN_ARCH, _GPUS        what the device says of itself
//   TOKITAI_STAND_IN_STRAY=1            a write in front of the first allocation's payload at a launch
#pragma once

#include_next <hip/hip_runtime.h>

#undef TOKITAI_DEVICE_CPU

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tuple>

#include "tokitai_host/launch.hpp"

constexpr hipError_t hipErrorOutOfMemory = hipError_t(2), hipErrorDeinitialized = hipError_t(4),
                     hipErrorInvalidConfiguration = hipError_t(9), hipErrorNoDevice = hipError_t(100),
                     hipErrorInvalidDevice = hipError_t(101),
                     hipErrorECCNotCorrectable = hipError_t(214),
                     hipErrorIllegalAddress = hipError_t(700),
                     hipErrorContextIsDestroyed = hipError_t(709);
enum hipMemcpyKind { hipMemcpyHostToDevice, hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice };
enum hipFuncAttribute { hipFuncAttributeMaxDynamicSharedMemorySize };
struct ihipEvent_t {
  timespec time;
};
struct hipDeviceProp_t {
  char name[256], gcnArchName[256];
  int warpSize, multiProcessorCount, maxThreadsPerBlock;
  size_t totalGlobalMem, sharedMemPerBlock;
};

// What the cpu device's harness has besides, and a GPU's has not.
namespace tokitai {
[[noreturn]] inline void die_of_misaligned_atomic(const void*, size_t) { abort(); }
}  // namespace tokitai

namespace stand_in {

inline hipError_t last = hipSuccess;
inline size_t used = 0;
inline unsigned char* first = nullptr;

inline size_t number(const char* name, size_t otherwise) {
  const char* text = getenv(name);
  return text ? strtoull(text, nullptr, 10) : otherwise;
}

// The error that a call is to give now.
inline hipError_t fault(const char* call) {
  static unsigned calls = 0;
  char name[64] = "";
  unsigned nth = 0, code = 0;
  const char* text = getenv("TOKITAI_STAND_IN_FAIL");
  if (!text || sscanf(text, "%63[^:]:%u:%u", name, &nth, &code) != 3 || strcmp(name, call) != 0 ||
      ++calls != nth)
    return hipSuccess;
  return hipError_t(code);
}

template <class F, class... P>
struct Call {
  F function;
  std::tuple<P...> values;
  static void all_threads(const void* call, tokitai::Block& block) {
    tokitai::for_each_thread<one_thread>(block, call);
  }
  static void one_thread(const void* call) {
    const Call& self = *static_cast<const Call*>(call);
    std::apply(self.function, self.values);
  }
};

template <class F, class... P>
void launch(F function, dim3 grid, dim3 block, size_t shared, hipStream_t, P... values) {
  last = fault("launch");
  if (last != hipSuccess) return;
  if (size_t(block.x) * block.y * block.z > 1024 || grid.x == 0) {
    last = hipErrorInvalidConfiguration;
    return;
  }
  if (shared > 65536) {
    last = hipErrorInvalidValue;
    return;
  }
  if (getenv("TOKITAI_STAND_IN_STRAY") && first) first[4095] = 0;
  const Call<F, P...> call = {function, {values...}};
  tokitai::Work work = {};
  work.kernel = "a kernel";
  work.all_threads = Call<F, P...>::all_threads;
  work.one_thread = Call<F, P...>::one_thread;
  work.arguments = &call;
  work.grid = {grid.x, grid.y, grid.z};
  work.block = {block.x, block.y, block.z};
  work.dynamic_bytes = shared;
  static const unsigned char zeros[64] = {};
  work.fill = {zeros, sizeof zeros};
  work.watched = tokitai::no_index;
  tokitai::launch(work);
  if (work.failed) last = hipErrorUnknown;
}

}  // namespace stand_in

#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) \
  stand_in::launch([](auto... given) { (kernel)(given...); }, grid, block, shared, stream, ##__VA_ARGS__)

inline const char* hipGetErrorName(hipError_t error) {
  switch (int(error)) {
    case 2: return "hipErrorOutOfMemory";
    case 9: return "hipErrorInvalidConfiguration";
    case 100: return "hipErrorNoDevice";
    case 101: return "hipErrorInvalidDevice";
    case 214: return "hipErrorECCNotCorrectable";
    case 700: return "hipErrorIllegalAddress";
    default: return "hipErrorUnknown";
  }
}
inline const char* hipGetErrorString(hipError_t) { return "words of the runtime"; }
inline hipError_t hipGetLastError() {
  const hipError_t error = stand_in::last;
  stand_in::last = hipSuccess;
  return error;
}
inline hipError_t hipGetDeviceCount(int* count) {
  *count = int(stand_in::number("TOKITAI_STAND_IN_GPUS", 1));
  return *count ? stand_in::fault("hipGetDeviceCount") : hipErrorNoDevice;
}
inline hipError_t hipSetDevice(int gpu) {
  return size_t(gpu) < stand_in::number("TOKITAI_STAND_IN_GPUS", 1) ? hipSuccess
                                                                     : hipErrorInvalidDevice;
}
inline size_t stand_in_memory() {
  return stand_in::number("TOKITAI_STAND_IN_MEMORY", size_t(1) << 30);
}
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int) {
  const char* arch = getenv("TOKITAI_STAND_IN_ARCH");
  snprintf(properties->name, sizeof properties->name, "stand-in");
  snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "%s",
           arch ? arch : "gfx1101:xnack-");
  properties->warpSize = 32;
  properties->multiProcessorCount = 4;
  properties->maxThreadsPerBlock = 1024;
  properties->totalGlobalMem = stand_in_memory();
  properties->sharedMemPerBlock = 65536;
  return stand_in::fault("hipGetDeviceProperties");
}
inline hipError_t hipRuntimeGetVersion(int* version) {
  *version = 50221153;
  return hipSuccess;
}
inline hipError_t hipDriverGetVersion(int* version) {
  *version = 7;
  return hipSuccess;
}
inline hipError_t hipDeviceGetPCIBusId(char* bus, int size, int) {
  snprintf(bus, size_t(size), "0000:03:00.0");
  return hipSuccess;
}
inline hipError_t hipDeviceSynchronize() { return stand_in::fault("hipDeviceSynchronize"); }
inline hipError_t hipMemGetInfo(size_t* free_bytes, size_t* all_bytes) {
  *all_bytes = stand_in_memory();
  *free_bytes = *all_bytes - stand_in::used;
  return hipSuccess;
}
// In front of each allocation lies its size. The memory holds what no kernel may rely on.
inline hipError_t hipMalloc(void** memory, size_t bytes) {
  const hipError_t error = stand_in::fault("hipMalloc");
  if (error != hipSuccess) return error;
  if (stand_in::used + bytes > stand_in_memory()) return hipErrorOutOfMemory;
  auto* base = static_cast<unsigned char*>(aligned_alloc(256, (bytes + 256 + 255) / 256 * 256));
  memcpy(base, &bytes, sizeof bytes);
  memset(base + 256, 0x77, bytes);
  stand_in::used += bytes;
  if (!stand_in::first) stand_in::first = base + 256;
  *memory = base + 256;
  return hipSuccess;
}
inline hipError_t hipFree(void* memory) {
  auto* base = static_cast<unsigned char*>(memory) - 256;
  size_t bytes;
  memcpy(&bytes, base, sizeof bytes);
  stand_in::used -= bytes;
  if (memory == stand_in::first) stand_in::first = nullptr;
  free(base);
  return hipSuccess;
}
inline hipError_t hipMemcpy(void* target, const void* source, size_t bytes, hipMemcpyKind) {
  memcpy(target, source, bytes);
  return stand_in::fault("hipMemcpy");
}
inline hipError_t hipMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset = 0,
                                    hipMemcpyKind = hipMemcpyHostToDevice) {
  memcpy(static_cast<char*>(const_cast<void*>(symbol)) + offset, source, bytes);
  return stand_in::fault("hipMemcpyToSymbol");
}
inline hipError_t hipMemcpyFromSymbol(void* target, const void* symbol, size_t bytes, size_t offset = 0,
                                      hipMemcpyKind = hipMemcpyDeviceToHost) {
  memcpy(target, static_cast<const char*>(symbol) + offset, bytes);
  return stand_in::fault("hipMemcpyFromSymbol");
}
inline hipError_t hipMemset(void* target, int value, size_t bytes) {
  memset(target, value, bytes);
  return stand_in::fault("hipMemset");
}
// The module API, for the one kernel that it knows: scale<float> of tests/gfx_samples.py.
using hipModule_t = const char*;
using hipFunction_t = const char*;
#define HIP_LAUNCH_PARAM_BUFFER_POINTER reinterpret_cast<void*>(1)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE reinterpret_cast<void*>(2)
#define HIP_LAUNCH_PARAM_END reinterpret_cast<void*>(3)
inline hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  *module = static_cast<const char*>(image);
  return memcmp(image, "\x7f" "ELF", 4) ? hipErrorInvalidValue : stand_in::fault("hipModuleLoadData");
}
inline hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t, const char* name) {
  *function = name;
  const bool known = strcmp(name, "_Z5scaleIfEvPT_PKS0_S0_i") == 0;
  return known ? stand_in::fault("hipModuleGetFunction") : hipErrorInvalidValue;
}
inline hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                                        unsigned, unsigned, hipStream_t, void** parameters, void** extra) {
  struct Arguments {
    float* out;
    const float* in;
    float by;
    int n;
  } given;
  if (parameters || extra[0] != HIP_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != HIP_LAUNCH_PARAM_BUFFER_SIZE ||
      extra[4] != HIP_LAUNCH_PARAM_END || *static_cast<size_t*>(extra[3]) != sizeof given)
    return hipErrorInvalidValue;
  memcpy(&given, extra[1], sizeof given);
  for (int at = 0; at < given.n && at < int(grid * block); at++)
    given.out[at] = __builtin_fmaf(given.in[at ^ 1], given.by, 1.0f);
  return stand_in::fault("hipModuleLaunchKernel");
}
inline hipError_t hipFuncSetAttribute(const void*, hipFuncAttribute, int) {
  return stand_in::fault("hipFuncSetAttribute");
}
inline hipError_t hipEventCreate(hipEvent_t* event) {
  *event = new ihipEvent_t();
  return stand_in::fault("hipEventCreate");
}
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t) {
  clock_gettime(CLOCK_MONOTONIC, &event->time);
  return stand_in::fault("hipEventRecord");
}
inline hipError_t hipEventSynchronize(hipEvent_t) { return stand_in::fault("hipEventSynchronize"); }
inline hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t begin, hipEvent_t end) {
  *milliseconds = float(double(end->time.tv_sec - begin->time.tv_sec) * 1e3 +
                        double(end->time.tv_nsec - begin->time.tv_nsec) * 1e-6);
  return stand_in::fault("hipEventElapsedTime");
}
