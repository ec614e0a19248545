// Stands for <cuda_pipeline_primitives.h> on the cpu device.
#pragma once

#include "tokitai_host/libraries/async_copies.hpp"
