#pragma once
static const int shared_value = 3;
