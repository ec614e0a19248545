// Stands for <cooperative_groups/memcpy_async.h> on the cpu device.
#pragma once

#include "../tokitai_host/libraries/cuda_pipeline.hpp"
