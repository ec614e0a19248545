// HIP's vector types: CUDA has the same ones.
#pragma once

#include <vector_functions.h>
#include <vector_types.h>
