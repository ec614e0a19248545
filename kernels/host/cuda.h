// Stands for <cuda.h> on the cpu device.
#pragma once

#include "cuda_runtime.h"
