// Stands for <hip/hip_fp8.h> on the cpu device.
#pragma once

#include "../tokitai_host/numbers/float8.hpp"
#include "hip_runtime.h"
