// Stands for <device_launch_parameters.h> on the cpu device.
#pragma once

#include "cuda_runtime.h"
