// From a kernel's function pointer to its parameters: compared with the spec when the harness is
// compiled, and turned into ranges that integers are checked against at each launch.
#pragma once

#include <limits.h>
#include <string.h>

#include <type_traits>
#include <utility>

#include "tokitai_program.hpp"

struct __half;  // of hip_fp16.h, which a source may leave out

namespace tokitai {

enum class DType {
  float16,
  bfloat16,
  float8,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,
};

// Whether T can hold values of the dtype. The 16-bit floats are classes in HIP and CUDA, _Float16,
// or their bits in an unsigned integer, and so are the 8-bit ones; int8 may be char, and bool an unsigned byte.
// An enumeration is the integer that it stands on, of either sign.
template <class T>
constexpr bool holds(DType dtype) {
  if constexpr (std::is_enum_v<T>) {
    using Integer = std::underlying_type_t<T>;
    if constexpr (!std::is_same_v<Integer, bool>)
      return holds<std::make_signed_t<Integer>>(dtype) || holds<std::make_unsigned_t<Integer>>(dtype);
  }
  constexpr bool integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
  constexpr bool is_signed = integer && std::is_signed_v<T>;
  constexpr bool is_unsigned = integer && std::is_unsigned_v<T>;
  constexpr bool is_class = std::is_class_v<T> && sizeof(T) == 2;
#ifdef __FLT16_MANT_DIG__
  constexpr bool is_float16 = std::is_same_v<T, _Float16>;
#else
  constexpr bool is_float16 = false;
#endif
  switch (dtype) {
    case DType::float16:
      return std::is_same_v<T, __half> || is_float16 || (is_unsigned && sizeof(T) == 2);
    case DType::bfloat16:
      return (is_class && !std::is_same_v<T, __half>) || (is_unsigned && sizeof(T) == 2);
    case DType::float8: return sizeof(T) == 1 && (is_unsigned || std::is_class_v<T>);
    case DType::float32: return std::is_same_v<T, float>;
    case DType::float64: return std::is_same_v<T, double>;
    case DType::int8: return is_signed && sizeof(T) == 1;
    case DType::int16: return is_signed && sizeof(T) == 2;
    case DType::int32: return is_signed && sizeof(T) == 4;
    case DType::int64: return is_signed && sizeof(T) == 8;
    case DType::uint8: return sizeof(T) == 1 && (is_unsigned || std::is_same_v<T, char>);
    case DType::uint16: return is_unsigned && sizeof(T) == 2;
    case DType::uint32: return is_unsigned && sizeof(T) == 4;
    case DType::uint64: return is_unsigned && sizeof(T) == 8;
    case DType::boolean: return std::is_same_v<T, bool> || (is_unsigned && sizeof(T) == 1);
  }
  return false;
}

// float4 and its like: elements of which .x is the first.
template <class T, class = void>
struct Component {
  using type = T;
};
template <class T>
struct Component<T, std::void_t<decltype(std::declval<T&>().x)>> {
  using type = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<T&>().x)>>;
};

template <class T, bool is_void = std::is_void_v<T>>
struct ElementsHold {
  using Single = typename Component<T>::type;
  static constexpr bool of(DType dtype) {
    return holds<T>(dtype) || (holds<Single>(dtype) && sizeof(T) % sizeof(Single) == 0) ||
           (dtype == DType::uint8 && is_struct());
  }
  // Structs and unions as their bytes; the 8- and 16-bit floats, which make floats, are classes too, and no structs.
  static constexpr bool is_struct() {
    if constexpr (std::is_class_v<T> || std::is_union_v<T>)
      return (sizeof(T) > 2 || !std::is_constructible_v<float, T>) && !std::is_polymorphic_v<T>;
    return false;
  }
};
template <class T>
struct ElementsHold<T, true> {
  static constexpr bool of(DType) { return true; }  // void*: the kernel says nothing of elements
};

// The parameter is a pointer to elements of the dtype, const or not, or to arrays of them: float (*)[4].
template <class P>
constexpr bool takes_buffer(DType dtype) {
  if constexpr (std::is_pointer_v<P>)
    return ElementsHold<std::remove_cv_t<std::remove_all_extents_t<std::remove_pointer_t<P>>>>::of(dtype);
  else
    return false;
}
// The parameter is a pointer to such pointers.
template <class P>
constexpr bool takes_list(DType dtype) {
  if constexpr (std::is_pointer_v<P>)
    return takes_buffer<std::remove_cv_t<std::remove_pointer_t<P>>>(dtype);
  else
    return false;
}
template <class P>
constexpr bool takes_scalar(DType dtype) {
  return holds<std::remove_cv_t<P>>(dtype);
}
template <class P>
constexpr bool takes_integer() {
  return std::is_integral_v<P> || std::is_enum_v<P>;
}

template <class P>
constexpr Parameter parameter(Argument kind, const char* place) {
  if constexpr (std::is_same_v<P, bool>) {
    return {kind, place, 0, 1, 0, 0, nullptr};
  } else if constexpr (std::is_integral_v<P>) {
    constexpr int bits = int(sizeof(P) * CHAR_BIT);
    if (std::is_unsigned_v<P>) return {kind, place, 0, ~Word(0) >> (64 - bits), 0, 0, nullptr};
    const Word highest = ~Word(0) >> (65 - bits);
    return {kind, place, -int64_t(highest) - 1, highest, 0, 0, nullptr};
  } else {
    return {kind, place, INT64_MIN, ~Word(0), 0, 0, nullptr};
  }
}

struct NoSuchParameter {};

template <unsigned index, class... P>
struct ParameterAt {
  using type = NoSuchParameter;
};
template <class First, class... Rest>
struct ParameterAt<0, First, Rest...> {
  using type = First;
};
template <unsigned index, class First, class... Rest>
struct ParameterAt<index, First, Rest...> : ParameterAt<index - 1, Rest...> {};

// A value of type P from the low bytes of a word.
template <class P>
inline P argument_from(Word word) {
  static_assert(sizeof(P) <= sizeof word, "a parameter of more than 8 bytes is passed as a struct");
  P value;
  memcpy(&value, &word, sizeof value);
  return value;
}

// How a parameter is made of words: a plain one is one word, a struct has one for where it lies and one for each
// place, as generated makers say. No macro of the source can touch these names.
struct Plain {
  static constexpr unsigned tokitai_length = 1;
};

template <class... Makers>
constexpr unsigned first_word(size_t parameter) {
  constexpr unsigned counts[] = {Makers::tokitai_length..., 0};
  unsigned first = 0;
  for (size_t i = 0; i < parameter; i++) first += counts[i];
  return first;
}

// Whether T, an aggregate, takes values for more than `count` members, each element of an array being one. Of
// other classes only their author knows.
template <class T>
struct Anything {
  template <class U, class = std::enable_if_t<!std::is_same_v<U, T>>>
  constexpr operator U() const;
};
template <class T, class Indices, class = void>
struct Takes : std::false_type {};
template <class T, size_t... i>
struct Takes<T, std::index_sequence<i...>, std::void_t<decltype(T{(void(i), Anything<T>())...})>>
    : std::true_type {};
template <class T, unsigned count>
constexpr bool has_more_than() {
  if constexpr (std::is_aggregate_v<T>)
    return Takes<T, std::make_index_sequence<count + 1>>::value;
  else
    return false;
}

// What a kernel takes as a struct: the parameter's type, or what it points to.
template <class P>
struct StructOf {
  using type = P;
};
template <class T>
struct StructOf<T*> {
  using type = std::remove_cv_t<T>;
};

// A struct that is filled place by place; `passed`: by value, where one behind a pointer is never copied.
template <class P, bool passed = true>
struct Room {
  using Single = std::remove_extent_t<P>;
  static_assert(!passed || (std::is_trivially_copy_constructible_v<Single> &&
                            std::is_trivially_destructible_v<Single>),
                "a struct is passed as its bytes: it must be trivially copyable");
  alignas(P) unsigned char bytes[sizeof(P)] = {};
  P& tokitai_value() { return *reinterpret_cast<P*>(bytes); }
};

template <class T, class Maker>
void make_struct(unsigned char* to, const Word* words) {
  Room<T, false> room;
  Maker::tokitai_fill(room.tokitai_value(), words);
  memcpy(to, room.bytes, sizeof(T));
}

// The word of a struct, or of several behind one pointer, in front of those of its places.
template <class P, class T, class Maker>
constexpr Parameter structure(const char* place) {
  if constexpr (std::is_pointer_v<P>)
    return {Argument::structure, place,      0, 0, unsigned(sizeof(T)), Maker::tokitai_length - 1,
            &make_struct<T, Maker>};
  else
    return {Argument::structure, place, 0, 0, 0, 0, nullptr};
}

template <auto function>
struct KernelTraits {
  static_assert(!std::is_same_v<decltype(function), decltype(function)>,
                "a kernel is a __global__ function that returns void");
};
template <class... P, void (*function)(P...)>
struct KernelTraits<function> {
  static constexpr unsigned count = sizeof...(P);
  static_assert(count <= argument_limit, "too many parameters");
  template <unsigned index>
  using At = typename ParameterAt<index, P...>::type;
};

}  // namespace tokitai
