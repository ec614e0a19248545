// Stands for <cooperative_groups/reduce.h> on the cpu device.
#pragma once

#include "../cooperative_groups.h"
