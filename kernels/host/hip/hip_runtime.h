// Stands for <hip/hip_runtime.h> on the cpu device.
#pragma once

#include "../tokitai_host/atomics.hpp"
#include "../tokitai_host/block_barrier.hpp"
#include "../tokitai_host/builtins.hpp"
#include "../tokitai_host/language.hpp"
#include "../tokitai_host/libraries/textures.hpp"
#include "../tokitai_host/math.hpp"
#include "../tokitai_host/numbers/rounded.hpp"
#include "../tokitai_host/numbers/special.hpp"
#include "../tokitai_host/vector_types.hpp"
#include "../tokitai_host/warp_operations.hpp"
#include "hip_runtime_api.h"
