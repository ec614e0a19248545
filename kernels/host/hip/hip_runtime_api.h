// The host API's types, for signatures that stand beside device code. There is no host API here:
// the harness allocates, launches and measures, and a build leaves host code out.
#pragma once

enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorUnknown = 999 };
struct ihipStream_t;
using hipStream_t = ihipStream_t*;
struct ihipEvent_t;
using hipEvent_t = ihipEvent_t*;
