// Part of <hipcub/hipcub.hpp>.
#pragma once

#include "hipcub.hpp"
