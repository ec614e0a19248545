// Stands for <hip/hip_cooperative_groups.h> on the cpu device.
#pragma once

#include "../tokitai_host/cooperative_groups.hpp"
#include "hip_runtime.h"
