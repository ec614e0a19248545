// Stands for <cub/cub.cuh>: hipCUB under its other name.
#pragma once

#include <hipcub/hipcub.hpp>
