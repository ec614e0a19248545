// HIP's module API over CUDA's driver API, whose functions the runtime finds: nothing links to libcuda.
// Their results have the runtime's numbers (CUDA Driver API, CUresult; since CUDA 11.0).
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#define hipModule_t CUmodule
#define hipFunction_t CUfunction
#define HIP_LAUNCH_PARAM_BUFFER_POINTER CU_LAUNCH_PARAM_BUFFER_POINTER
#define HIP_LAUNCH_PARAM_BUFFER_SIZE CU_LAUNCH_PARAM_BUFFER_SIZE
#define HIP_LAUNCH_PARAM_END CU_LAUNCH_PARAM_END

namespace tokitai_cuda {

// Calls a function of the driver by its name, with the arguments of `Function`, its type.
template <class Function, class... Arguments>
inline cudaError_t call_driver(const char* name, Arguments... arguments) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 11000, cudaEnableDefault, &state);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &state);
#endif
  if (error != cudaSuccess) return error;
  if (!found) return cudaErrorNotSupported;
  return static_cast<cudaError_t>(reinterpret_cast<Function*>(found)(arguments...));
}

}  // namespace tokitai_cuda

inline cudaError_t hipModuleLoadData(CUmodule* module, const void* image) {
  return tokitai_cuda::call_driver<decltype(cuModuleLoadData)>("cuModuleLoadData", module, image);
}
inline cudaError_t hipModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return tokitai_cuda::call_driver<decltype(cuModuleGetFunction)>("cuModuleGetFunction", function, module, name);
}
inline cudaError_t hipModuleLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                         unsigned block_x, unsigned block_y, unsigned block_z,
                                         unsigned shared_bytes, CUstream stream, void** parameters,
                                         void** extra) {
  return tokitai_cuda::call_driver<decltype(cuLaunchKernel)>("cuLaunchKernel", function, grid_x, grid_y, grid_z,
                                                             block_x, block_y, block_z, shared_bytes, stream,
                                                             parameters, extra);
}

namespace tokitai_cuda {

// Lets a function have so much dynamic shared memory, which a launch of it does not ask for by itself.
inline cudaError_t allow_shared(CUfunction function, size_t bytes) {
  return call_driver<decltype(cuFuncSetAttribute)>(
      "cuFuncSetAttribute", function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(bytes));
}

}  // namespace tokitai_cuda
