// Stands for <hip/hip_fp16.h> on the cpu device.
#pragma once

#include "../tokitai_host/numbers/half.hpp"
#include "hip_runtime.h"
