// What a code object tells of its kernels beside their machine code: which symbol a kernel of the spec
// is, and where each word that a launch passes lies among its arguments.
#pragma once

#include "tokitai_arguments.hpp"

#define TOKITAI_TABLE extern "C" __device__ __attribute__((used)) const

// kind: of tokitai_passed, or the number behind it for a struct, which `highest` has the bytes of where a pointer
// leads to it. parameter: its number. offset, bytes: of the word in the parameter.
constexpr unsigned tokitai_struct_kind = 5;
struct tokitai_row {
  unsigned kind, parameter, offset, bytes;
  long long lowest;
  unsigned long long highest;
};
template <unsigned rows>
struct tokitai_table {
  const void* kernel;
  tokitai_row words[rows];
};
struct tokitai_place {
  const volatile void* address;
  unsigned long long bytes;
};

template <class P>
constexpr tokitai_row tokitai_row_of(unsigned kind, unsigned parameter, unsigned offset) {
  const tokitai::Parameter range = tokitai::parameter<P>(tokitai::Argument::integer, "");
  return {kind, parameter, offset, sizeof(P), range.lowest, range.highest};
}
template <class P, class T>
constexpr tokitai_row tokitai_row_of_struct(unsigned parameter) {
  constexpr bool pointer = std::is_pointer_v<P>;
  return {tokitai_struct_kind, parameter, 0, pointer ? sizeof(P) : 0, 0, pointer ? sizeof(T) : 0};
}
template <class T>
struct tokitai_held {
  T tokitai_in;
};
