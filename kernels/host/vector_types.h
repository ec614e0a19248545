// Stands for <vector_types.h> on the cpu device.
#pragma once

#include "cuda_runtime.h"
