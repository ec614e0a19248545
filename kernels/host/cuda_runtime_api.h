// Stands for <cuda_runtime_api.h> on the cpu device.
#pragma once

#include "cuda_runtime.h"
