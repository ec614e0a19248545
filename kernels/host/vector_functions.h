// Stands for <vector_functions.h> on the cpu device.
#pragma once

#include "cuda_runtime.h"
