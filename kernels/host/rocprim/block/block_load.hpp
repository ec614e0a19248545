// Part of <rocprim/rocprim.hpp>.
#pragma once

#include "../rocprim.hpp"
