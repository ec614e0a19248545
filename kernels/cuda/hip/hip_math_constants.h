// HIP's constants.
#pragma once

#include "../../host/hip/hip_math_constants.h"
