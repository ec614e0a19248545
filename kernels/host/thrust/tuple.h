// Stands for <thrust/tuple.h> on the cpu device.
#pragma once

#include <hip/hip_runtime.h>
#include "../tokitai_host/libraries/thrust.hpp"
