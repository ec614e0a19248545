// Stands for <thrust/device_ptr.h> on the cpu device.
#pragma once

#include <hip/hip_runtime.h>
#include "../tokitai_host/libraries/thrust.hpp"
