// A CUDA runtime and driver without a GPU, linked in the place of cudart: "device" memory is the host's own.
// The driver knows one kernel, scale<float> of tests/gfx_samples.py, and writes each call of it, a line with
// what it was given, to the file TOKITAI_STAND_IN_LOG. TOKITAI_STAND_IN_FAIL=CALL:CODE makes CALL give that error.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace {

void note(const char* format, ...) {
  const char* name = getenv("TOKITAI_STAND_IN_LOG");
  FILE* file = name ? fopen(name, "a") : nullptr;
  if (!file) return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fclose(file);
}

CUresult fault(const char* call) {
  char name[64] = "";
  int code = 0;
  const char* text = getenv("TOKITAI_STAND_IN_FAIL");
  if (text && sscanf(text, "%63[^:]:%d", name, &code) == 2 && !strcmp(name, call)) return CUresult(code);
  return CUDA_SUCCESS;
}

CUresult load(CUmodule* module, const void* image) {
  const bool elf = memcmp(image, "\177ELF", 4) == 0;
  note("load %s\n", elf ? "cubin" : strstr(static_cast<const char*>(image), ".entry") ? "ptx" : "neither");
  *module = static_cast<CUmodule>(const_cast<void*>(image));
  return fault("cuModuleLoadData");
}

CUresult function_of(CUfunction* function, CUmodule module, const char* name) {
  note("function %s\n", name);
  *function = reinterpret_cast<CUfunction>(module);
  return fault("cuModuleGetFunction");
}

CUresult allow(CUfunction, CUfunction_attribute attribute, int value) {
  note("allow %d %d\n", int(attribute), value);
  return fault("cuFuncSetAttribute");
}

CUresult launch(CUfunction, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
                unsigned shared, CUstream, void** parameters, void** extra) {
  struct Arguments {
    float* out;
    const float* in;
    float by;
    int n;
  } given;
  if (parameters || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
      extra[4] != CU_LAUNCH_PARAM_END)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t bytes = *static_cast<size_t*>(extra[3]);
  note("launch %u,%u,%u %u,%u,%u shared %u bytes %zu\n", x, y, z, block_x, block_y, block_z, shared, bytes);
  if (bytes != sizeof given) return CUDA_ERROR_INVALID_VALUE;
  memcpy(&given, extra[1], sizeof given);
  for (int at = 0; at < given.n && at < int(x * block_x); at++)
    given.out[at] = __builtin_fmaf(given.in[at ^ 1], given.by, 1.0f);
  return fault("cuLaunchKernel");
}

struct Entry {
  const char* name;
  void* function;
};
const Entry entries[] = {
    {"cuModuleLoadData", reinterpret_cast<void*>(load)},
    {"cuModuleGetFunction", reinterpret_cast<void*>(function_of)},
    {"cuFuncSetAttribute", reinterpret_cast<void*>(allow)},
    {"cuLaunchKernel", reinterpret_cast<void*>(launch)},
};

cudaError_t find(const char* name, void** found) {
  for (const Entry& one : entries)
    if (!strcmp(one.name, name)) *found = one.function;
  return cudaSuccess;
}

}  // namespace

extern "C" {

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*) {
  return find(name, found);
}
#else
cudaError_t cudaGetDriverEntryPoint(const char* name, void** found, unsigned long long,
                                    cudaDriverEntryPointQueryResult*) {
  return find(name, found);
}
#endif

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* given, int) {
  memset(given, 0, sizeof *given);
  strcpy(given->name, "stand-in");
  given->major = 9;
  given->warpSize = 32;
  given->multiProcessorCount = 1;
  given->maxThreadsPerBlock = 1024;
  given->sharedMemPerBlock = 48 << 10;
  given->totalGlobalMem = size_t(1) << 30;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* given, int gpu) { return cudaGetDeviceProperties(given, gpu); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 0, cudaSuccess; }
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int) {
  return snprintf(text, size_t(size), "0000:00:00.0"), cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "an error"; }
const char* cudaGetErrorString(cudaError_t) { return "of the stand-in"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return (*memory = malloc(bytes)) ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* memory) { return free(memory), cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* unused, size_t* total) {
  return *unused = *total = size_t(1) << 30, cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  return memcpy(to, from, bytes), cudaSuccess;
}
cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) {
  return cudaErrorInvalidSymbol;
}
cudaError_t cudaMemcpyFromSymbol(void*, const void*, size_t, size_t, cudaMemcpyKind) {
  return cudaErrorInvalidSymbol;
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) { return memset(memory, value, bytes), cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaErrorInvalidDeviceFunction; }
cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = nullptr, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* time, cudaEvent_t, cudaEvent_t) { return *time = 1.0f, cudaSuccess; }
cudaError_t cudaEventElapsedTime_v2(float* time, cudaEvent_t, cudaEvent_t) { return *time = 1.0f, cudaSuccess; }

// What nvcc puts into every program.
void** __cudaRegisterFatBinary(void*) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

}  // extern "C"
