// Stands for <hipcub/hipcub.hpp> on the cpu device.
#pragma once

#include <hip/hip_runtime.h>
#include "../tokitai_host/libraries/cub/order.hpp"
