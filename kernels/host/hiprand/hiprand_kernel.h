// Stands for <hiprand/hiprand_kernel.h> on the cpu device.
#pragma once

#include <hip/hip_runtime.h>
#include "../tokitai_host/libraries/random.hpp"
