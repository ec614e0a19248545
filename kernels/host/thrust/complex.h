// Stands for <thrust/complex.h> on the cpu device.
#pragma once

#include <hip/hip_runtime.h>
#include "../tokitai_host/libraries/thrust_complex.hpp"
