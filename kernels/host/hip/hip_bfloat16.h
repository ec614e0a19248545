// Stands for <hip/hip_bfloat16.h> on the cpu device.
#pragma once

#include "../tokitai_host/numbers/bfloat16.hpp"
#include "hip_runtime.h"
