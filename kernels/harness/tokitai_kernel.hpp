// What stands in front of a kernel's source. No macro of the source can touch it, and behind the source
// nothing but names that begin with tokitai_ is used.
#pragma once

#include <hip/hip_runtime.h>

#include "tokitai_arguments.hpp"

#ifdef TOKITAI_DEVICE_CPU
#include "tokitai_starter_cpu.hpp"
#else
#include "tokitai_starter_hip.hpp"
#endif

using tokitai_program_type = tokitai::Program;
using tokitai_kernel_entry = tokitai::KernelEntry;
using tokitai_symbol_entry = tokitai::SymbolEntry;

constexpr tokitai::Argument tokitai_buffer = tokitai::Argument::buffer,
                            tokitai_scalar = tokitai::Argument::scalar,
                            tokitai_integer = tokitai::Argument::integer;
constexpr tokitai::DType tokitai_float16 = tokitai::DType::float16,
                         tokitai_bfloat16 = tokitai::DType::bfloat16,
                         tokitai_float8_e4m3fn = tokitai::DType::float8,
                         tokitai_float8_e4m3fnuz = tokitai::DType::float8,
                         tokitai_float8_e5m2 = tokitai::DType::float8,
                         tokitai_float8_e5m2fnuz = tokitai::DType::float8,
                         tokitai_float32 = tokitai::DType::float32,
                         tokitai_float64 = tokitai::DType::float64,
                         tokitai_int8 = tokitai::DType::int8, tokitai_int16 = tokitai::DType::int16,
                         tokitai_int32 = tokitai::DType::int32,
                         tokitai_int64 = tokitai::DType::int64,
                         tokitai_uint8 = tokitai::DType::uint8,
                         tokitai_uint16 = tokitai::DType::uint16,
                         tokitai_uint32 = tokitai::DType::uint32,
                         tokitai_uint64 = tokitai::DType::uint64,
                         tokitai_bool = tokitai::DType::boolean;

template <auto function>
constexpr unsigned tokitai_count = tokitai::KernelTraits<function>::count;

template <auto function, unsigned index>
constexpr bool tokitai_takes(tokitai::Argument kind, tokitai::DType dtype = tokitai_bool) {
  using P = typename tokitai::KernelTraits<function>::template At<index>;
  switch (kind) {
    case tokitai_buffer: return tokitai::takes_buffer<P>(dtype);
    case tokitai_scalar: return tokitai::takes_scalar<P>(dtype);
    default: return tokitai::takes_integer<P>();
  }
}

template <class T>
constexpr bool tokitai_symbol_holds(tokitai::DType dtype) {
  return tokitai::ElementsHold<std::remove_cv_t<std::remove_all_extents_t<T>>>::of(dtype);
}

template <auto function, class Indices, tokitai::Argument... kinds>
struct tokitai_parameters;
template <auto function, size_t... i, tokitai::Argument... kinds>
struct tokitai_parameters<function, std::index_sequence<i...>, kinds...> {
  using Traits = tokitai::KernelTraits<function>;
  static constexpr tokitai::Parameter list[] = {
      tokitai::parameter<typename Traits::template At<i>>(kinds)..., {}};
};

template <auto function, tokitai::Argument... kinds>
constexpr tokitai_kernel_entry tokitai_kernel(const char* name) {
  using Indices = std::make_index_sequence<sizeof...(kinds)>;
  return {name, sizeof...(kinds), tokitai_parameters<function, Indices, kinds...>::list,
          &tokitai::Starter<function>::kernel};
}

template <class T>
tokitai_symbol_entry tokitai_symbol(const char* name, T& symbol) {
  return {name, sizeof symbol, &symbol};
}
