// Part of <hipcub/hipcub.hpp>.
#pragma once

#include <hipcub/hipcub.hpp>
