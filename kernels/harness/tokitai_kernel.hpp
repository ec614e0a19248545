// What stands in front of a kernel's source. No macro of the source can touch it, and behind the source
// nothing but names that begin with tokitai_ is used.
#pragma once

// g++ leaves copies out of what it puts in for -fsanitize=thread (tokitai_tsan.hpp). The first declaration of
// a function says what it is called in the object.
#if defined(TOKITAI_WATCH_ACCESSES) && !defined(__clang__)
extern "C" {
void* memcpy(void*, const void*, __SIZE_TYPE__) noexcept __asm__("tokitai_watched_memcpy");
void* memmove(void*, const void*, __SIZE_TYPE__) noexcept __asm__("tokitai_watched_memmove");
void* memset(void*, int, __SIZE_TYPE__) noexcept __asm__("tokitai_watched_memset");
}
#endif

#include <hip/hip_runtime.h>

#include "tokitai_arguments.hpp"

#ifdef TOKITAI_DEVICE_CPU
#include "tokitai_starter_cpu.hpp"
#elif defined(TOKITAI_DEVICE_GFX)
#include "tokitai_tables_gfx.hpp"
#else
#include "tokitai_starter_hip.hpp"
#endif

using tokitai_program_type = tokitai::Program;
using tokitai_kernel_entry = tokitai::KernelEntry;
using tokitai_symbol_entry = tokitai::SymbolEntry;

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

// Whether a kernel takes the first `count` of its parameters: all, or the others have default arguments. On a
// GPU only the compiler can say the latter, where the kernel is launched.
template <auto function, class Call, size_t... i>
constexpr bool tokitai_takes_first(std::index_sequence<i...>) {
  using Traits = tokitai::KernelTraits<function>;
  if constexpr (sizeof...(i) >= Traits::count)
    return sizeof...(i) == Traits::count;
  else
#ifdef TOKITAI_DEVICE_CPU
    return decltype(Call::template tokitai_callable<typename Traits::template At<i>...>(0))::value;
#elif defined(TOKITAI_DEVICE_GFX)
    return false;  // values of default arguments are known to callers alone
#else
    return true;
#endif
}
template <auto function, class Call, size_t count>
constexpr bool tokitai_has_arguments =
    tokitai_takes_first<function, Call>(std::make_index_sequence<count>());
using tokitai_yes = std::true_type;
using tokitai_no = std::false_type;

template <auto function, unsigned index>
using tokitai_at = std::remove_cv_t<typename tokitai::KernelTraits<function>::template At<index>>;

// The type of a place in a struct, which a generated expression names; a pointer without __restrict__.
template <class T>
struct TokitaiPlain {
  using type = T;
};
template <class T>
struct TokitaiPlain<T* __restrict__> {
  using type = T*;
};
template <class T>
using tokitai_bare = typename TokitaiPlain<std::remove_cv_t<std::remove_reference_t<T>>>::type;
template <class T>
#ifdef TOKITAI_DEVICE_GFX  // its tables are the device's
__host__ __device__
#endif
    T&
    tokitai_some();

template <class P>
using tokitai_struct = typename tokitai::StructOf<P>::type;
template <class P, unsigned count>
using tokitai_several = tokitai_struct<P>[count];
template <class P>
constexpr bool tokitai_by_pointer = std::is_pointer_v<P>;
template <class P>
constexpr bool tokitai_is_struct = std::is_class_v<std::remove_extent_t<P>>;
template <class T>
constexpr bool tokitai_struct_fits = sizeof(T) <= tokitai::struct_limit;
template <class P, unsigned count>
constexpr bool tokitai_has_more_than = tokitai::has_more_than<std::remove_extent_t<P>, count>();
template <class T>
constexpr size_t tokitai_extent = std::extent_v<T>;

// A code object does not hold the default arguments that callers would pass.
#ifdef TOKITAI_DEVICE_GFX
#define TOKITAI_OF_DEFAULTS "; on the gfx device the spec must pass those with a default too"
#else
#define TOKITAI_OF_DEFAULTS ""
#endif

// What the spec passes for a word.
enum tokitai_passed { tokitai_buffer, tokitai_list, tokitai_scalar, tokitai_integer, tokitai_zero };

template <class P>
constexpr bool tokitai_takes(tokitai_passed passed, tokitai::DType dtype = tokitai_bool) {
  switch (passed) {
    case tokitai_buffer: return tokitai::takes_buffer<P>(dtype);
    case tokitai_list: return tokitai::takes_list<P>(dtype);
    case tokitai_scalar: return tokitai::takes_scalar<P>(dtype);
    case tokitai_zero: return tokitai::takes_integer<P>() || std::is_pointer_v<P>;
    default: return tokitai::takes_integer<P>();
  }
}

template <class T>
constexpr bool tokitai_symbol_holds(tokitai::DType dtype) {
  return tokitai::ElementsHold<std::remove_cv_t<std::remove_all_extents_t<T>>>::of(dtype);
}

template <class P, class T, class Maker>
constexpr tokitai::Parameter tokitai_structure(const char* place) {
  return tokitai::structure<P, T, Maker>(place);
}

using tokitai_word = tokitai::Word;
using tokitai_plain = tokitai::Plain;
using tokitai_parameter = tokitai::Parameter;
template <class P>
using tokitai_room = tokitai::Room<P>;

template <class T>
inline void tokitai_put(T& place, tokitai_word word) {
  const tokitai_bare<T> value = tokitai::argument_from<tokitai_bare<T>>(word);
  memcpy(const_cast<tokitai_bare<T>*>(&place), &value, sizeof value);
}

// A struct as the kernel takes it: made of its words behind the first, which says where it lies.
template <class Maker, class P>
inline P tokitai_taken(const tokitai_word* words) {
  if constexpr (std::is_pointer_v<P>) {
    return tokitai::argument_from<P>(*words);
  } else {
    tokitai_room<P> made;
    Maker::tokitai_fill(made.tokitai_value(), words + 1);
    return made.tokitai_value();
  }
}

template <class P>
constexpr tokitai_parameter tokitai_word_of(tokitai_passed passed, const char* place) {
  return tokitai::parameter<P>(passed == tokitai_scalar    ? tokitai::Argument::scalar
                               : passed == tokitai_integer ? tokitai::Argument::integer
                               : passed == tokitai_zero    ? tokitai::Argument::integer
                                                           : tokitai::Argument::buffer,
                               place);
}

#ifdef TOKITAI_TEXTURE_REFERENCES
// A kernel that fetches from textures at namespace scope: they are set in front of it.
template <auto function, auto... references>
struct TokitaiTextured;
template <class... P, void (*function)(P...), auto... references>
struct TokitaiTextured<function, references...> {
  // Each thread of a kernel writes the same, which is the tool's doing and no race of the kernel's.
  __attribute__((noinline, no_sanitize("thread"))) static void set(
      std::remove_reference_t<decltype(references->object)>... objects) {
    ((references->object = objects), ...);
  }
  static void run(std::remove_reference_t<decltype(references->object)>... objects, P... given) {
    set(objects...);
    function(given...);
  }
};
#endif

#ifndef TOKITAI_DEVICE_GFX
template <auto function, class Call, class... Makers>
constexpr tokitai_kernel_entry tokitai_kernel(const char* name, const tokitai_parameter* parameters,
                                              unsigned bound) {
  constexpr unsigned words = tokitai::first_word<Makers...>(sizeof...(Makers));
  static_assert(words <= tokitai::argument_limit, "too many arguments");
  return {name, words, parameters, bound, &tokitai::Starter<function, Call, Makers...>::kernel};
}

template <class T>
tokitai_symbol_entry tokitai_symbol(const char* name, T& symbol) {
  return {name, sizeof symbol, &symbol};
}
#endif
