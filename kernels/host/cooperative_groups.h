// Stands for <cooperative_groups.h> on the cpu device.
#pragma once

#include <hip/hip_cooperative_groups.h>
