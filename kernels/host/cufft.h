// Stands for <cufft.h> on the cpu device: of it, kernels have the types of their arrays.
#pragma once

#include <cuComplex.h>

using cufftReal = float;
using cufftDoubleReal = double;
using cufftComplex = cuFloatComplex;
using cufftDoubleComplex = cuDoubleComplex;
