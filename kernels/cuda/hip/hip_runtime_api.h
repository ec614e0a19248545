// Names of the HIP runtime API for those of the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

// Types and their values.
#define hipError_t cudaError_t
#define hipStream_t cudaStream_t
#define hipEvent_t cudaEvent_t
#define hipFuncAttributes cudaFuncAttributes
#define hipMemcpyKind cudaMemcpyKind
#define hipDeviceAttribute_t cudaDeviceAttr
#define hipFuncAttribute cudaFuncAttribute
#define hipMemcpyHostToHost cudaMemcpyHostToHost
#define hipMemcpyHostToDevice cudaMemcpyHostToDevice
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define hipMemcpyDeviceToDevice cudaMemcpyDeviceToDevice
#define hipMemcpyDefault cudaMemcpyDefault
#define hipHostMallocDefault cudaHostAllocDefault
#define hipHostRegisterDefault cudaHostRegisterDefault
#define hipStreamNonBlocking cudaStreamNonBlocking
#define hipEventDefault cudaEventDefault
#define hipEventDisableTiming cudaEventDisableTiming
#define hipFuncAttributeMaxDynamicSharedMemorySize cudaFuncAttributeMaxDynamicSharedMemorySize
#define hipDeviceAttributeWarpSize cudaDevAttrWarpSize
#define hipDeviceAttributeMultiprocessorCount cudaDevAttrMultiProcessorCount
#define hipDeviceAttributeMaxThreadsPerBlock cudaDevAttrMaxThreadsPerBlock
#define hipDeviceAttributeMaxSharedMemoryPerBlock cudaDevAttrMaxSharedMemoryPerBlock

// Errors.
#define hipSuccess cudaSuccess
#define hipErrorInvalidValue cudaErrorInvalidValue
#define hipErrorOutOfMemory cudaErrorMemoryAllocation
#define hipErrorMemoryAllocation cudaErrorMemoryAllocation
#define hipErrorNotInitialized cudaErrorInitializationError
#define hipErrorDeinitialized cudaErrorCudartUnloading
#define hipErrorInvalidConfiguration cudaErrorInvalidConfiguration
#define hipErrorInvalidDeviceFunction cudaErrorInvalidDeviceFunction
#define hipErrorNoDevice cudaErrorNoDevice
#define hipErrorInvalidDevice cudaErrorInvalidDevice
#define hipErrorNoBinaryForGpu cudaErrorNoKernelImageForDevice
#define hipErrorECCNotCorrectable cudaErrorECCUncorrectable
#define hipErrorIllegalAddress cudaErrorIllegalAddress
#define hipErrorLaunchOutOfResources cudaErrorLaunchOutOfResources
#define hipErrorLaunchTimeOut cudaErrorLaunchTimeout
#define hipErrorContextIsDestroyed cudaErrorContextIsDestroyed
#define hipErrorLaunchFailure cudaErrorLaunchFailure
#define hipErrorNotReady cudaErrorNotReady
#define hipErrorUnknown cudaErrorUnknown
#define hipGetErrorName cudaGetErrorName
#define hipGetErrorString cudaGetErrorString
#define hipGetLastError cudaGetLastError
#define hipPeekAtLastError cudaPeekAtLastError

// Devices and versions.
#define hipGetDeviceCount cudaGetDeviceCount
#define hipSetDevice cudaSetDevice
#define hipGetDevice cudaGetDevice
#define hipDeviceGetAttribute cudaDeviceGetAttribute
#define hipDeviceGetPCIBusId cudaDeviceGetPCIBusId
#define hipDeviceSynchronize cudaDeviceSynchronize
#define hipDeviceReset cudaDeviceReset
#define hipRuntimeGetVersion cudaRuntimeGetVersion
#define hipDriverGetVersion cudaDriverGetVersion

// Memory.
#define hipMalloc cudaMalloc
#define hipFree cudaFree
#define hipHostMalloc cudaHostAlloc
#define hipHostFree cudaFreeHost
#define hipHostRegister cudaHostRegister
#define hipHostUnregister cudaHostUnregister
#define hipMallocManaged cudaMallocManaged
#define hipMemGetInfo cudaMemGetInfo
#define hipMemcpy cudaMemcpy
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemcpyToSymbol cudaMemcpyToSymbol
#define hipMemcpyFromSymbol cudaMemcpyFromSymbol
#define hipGetSymbolAddress cudaGetSymbolAddress
#define hipMemset cudaMemset
#define hipMemsetAsync cudaMemsetAsync

// Streams, events, launches.
#define hipStreamCreate cudaStreamCreate
#define hipStreamCreateWithFlags cudaStreamCreateWithFlags
#define hipStreamDestroy cudaStreamDestroy
#define hipStreamSynchronize cudaStreamSynchronize
#define hipStreamWaitEvent(stream, event, flags) cudaStreamWaitEvent(stream, event, flags)
#define hipEventCreate cudaEventCreate
#define hipEventCreateWithFlags cudaEventCreateWithFlags
#define hipEventRecord cudaEventRecord
#define hipEventSynchronize cudaEventSynchronize
#define hipEventQuery cudaEventQuery
#define hipEventElapsedTime cudaEventElapsedTime
#define hipEventDestroy cudaEventDestroy
#define hipLaunchKernel cudaLaunchKernel
#define hipFuncGetAttributes cudaFuncGetAttributes
#define hipFuncSetAttribute cudaFuncSetAttribute

// CUDA's properties, and those that only HIP has or that CUDA 13 no longer has.
struct hipDeviceProp_t : cudaDeviceProp {
  char gcnArchName[256];
  int gcnArch, clockRate, memoryClockRate, computeMode, cooperativeMultiDeviceLaunch;
  size_t maxSharedMemoryPerMultiProcessor;
};
inline cudaError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  *properties = {};
  cudaDeviceProp& known = *properties;
  const cudaError_t error = cudaGetDeviceProperties(&known, device);
  if (error != cudaSuccess) return error;
  const int digits[] = {known.major % 10, known.minor % 10};
  char* name = properties->gcnArchName;
  for (const char letter : {'s', 'm', '_'}) *name++ = letter;
  if (known.major > 9) *name++ = char('0' + known.major / 10);
  for (const int digit : digits) *name++ = char('0' + digit);
  properties->maxSharedMemoryPerMultiProcessor = known.sharedMemPerMultiprocessor;
  cudaDeviceGetAttribute(&properties->clockRate, cudaDevAttrClockRate, device);
  cudaDeviceGetAttribute(&properties->memoryClockRate, cudaDevAttrMemoryClockRate, device);
  cudaDeviceGetAttribute(&properties->computeMode, cudaDevAttrComputeMode, device);
  return cudaSuccess;
}
