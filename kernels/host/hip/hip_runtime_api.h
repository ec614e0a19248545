// The host API's types, for signatures that stand beside device code. There is no host API here:
// the harness allocates, launches and measures, and a build leaves host code out.
#pragma once

#include <stddef.h>

enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorUnknown = 999 };
struct ihipStream_t;
using hipStream_t = ihipStream_t*;
struct ihipEvent_t;
using hipEvent_t = ihipEvent_t*;

// What a host gives a kernel by value.
struct hipPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
struct hipExtent {
  size_t width, height, depth;
};
struct hipPos {
  size_t x, y, z;
};
