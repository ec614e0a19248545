// Stands for <cuda_pipeline.h> on the cpu device.
#pragma once

#include "tokitai_host/libraries/cuda_pipeline.hpp"
