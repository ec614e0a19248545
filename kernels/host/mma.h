// Stands for <mma.h> on the cpu device.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "tokitai_host/libraries/wmma.hpp"
