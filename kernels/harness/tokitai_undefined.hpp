// What the compilers' checks of undefined behaviour call (compiler-rt, ubsan_handlers.h): the
// tool's own handlers, so that no runtime is linked and every report knows its GPU thread.
#pragma once

#include "tokitai_watch.hpp"

namespace tokitai {

// What each kind of report begins with.
struct SourcePlace {
  const char* file;
  unsigned line, column;
};
struct CheckedType {
  unsigned short kind, info;  // of an integer: is signed, and 2 to the power of its bits
  char name[1];
};
struct TypedPlace {
  SourcePlace at;
  const CheckedType* type;
};
struct ShiftPlace {
  SourcePlace at;
  const CheckedType *left, *right;
};
struct IndexPlace {
  SourcePlace at;
  const CheckedType *array, *index;
};

inline long long value_of(const CheckedType& type, uintptr_t value) {
  const unsigned bits = 1u << (type.info >> 1);
  const bool is_signed = type.info & 1;
  if (bits > 64) return *reinterpret_cast<const long long*>(value);
  if (is_signed && bits < 64) return (long long)(value << (64 - bits)) >> (64 - bits);
  return (long long)value;
}

__attribute__((format(printf, 4, 5))) inline void undefined(const char* kind, const SourcePlace& at,
                                                            const Spot& called, const char* format,
                                                            ...) {
  if (!watch.running) return;
  Finding* found = finding(kind, called, nullptr);
  if (!found || found->count > 1) return;
  found->file = at.file;
  found->line = at.line;
  va_list values;
  va_start(values, format);
  vsnprintf(found->message, sizeof found->message, format, values);
  va_end(values);
}

}  // namespace tokitai

#define TOKITAI_OVERFLOW(NAME, SIGN)                                                  \
  extern "C" void __ubsan_handle_##NAME##_overflow(const tokitai::TypedPlace* place,  \
                                                   uintptr_t left, uintptr_t right) { \
    tokitai::undefined("integer-overflow", place->at, TOKITAI_SPOT,                   \
                       "signed integer overflow: %lld " SIGN " %lld does not fit %s", \
                       tokitai::value_of(*place->type, left),                         \
                       tokitai::value_of(*place->type, right), place->type->name);    \
  }
TOKITAI_OVERFLOW(add, "+")
TOKITAI_OVERFLOW(sub, "-")
TOKITAI_OVERFLOW(mul, "*")

extern "C" void __ubsan_handle_negate_overflow(const tokitai::TypedPlace* place, uintptr_t) {
  tokitai::undefined("integer-overflow", place->at, TOKITAI_SPOT, "the negation does not fit %s",
                     place->type->name);
}
extern "C" void __ubsan_handle_divrem_overflow(const tokitai::TypedPlace* place, uintptr_t,
                                               uintptr_t) {
  tokitai::undefined("integer-division", place->at, TOKITAI_SPOT,
                     "division of a %s by zero, or its overflow", place->type->name);
}
extern "C" void __ubsan_handle_shift_out_of_bounds(const tokitai::ShiftPlace* place, uintptr_t left,
                                                   uintptr_t right) {
  tokitai::undefined("shift", place->at, TOKITAI_SPOT, "shift of %lld, a %s, by %lld",
                     tokitai::value_of(*place->left, left), place->left->name,
                     tokitai::value_of(*place->right, right));
}
extern "C" void __ubsan_handle_out_of_bounds(const tokitai::IndexPlace* place, uintptr_t index) {
  tokitai::undefined("index-out-of-bounds", place->at, TOKITAI_SPOT,
                     "index %lld is out of bounds of %s", tokitai::value_of(*place->index, index),
                     place->array->name);
}
extern "C" void __ubsan_handle_type_mismatch_v1(const tokitai::MisalignedAccess* place,
                                                const void* address) {
  const size_t alignment = size_t(1) << place->log_alignment;
  const tokitai::SourcePlace at = {place->file, place->line, place->column};
  if (!address)
    tokitai::undefined("null-pointer", at, TOKITAI_SPOT, "null pointer to %s is used",
                       place->type->name);
  else
    tokitai::undefined("misaligned", at, TOKITAI_SPOT,
                       "misaligned access to %s, which asks for %zu bytes", place->type->name,
                       alignment);
}

#define TOKITAI_UNDEFINED(NAME, KIND, WORDS)                                            \
  extern "C" void __ubsan_handle_##NAME(const tokitai::SourcePlace* place, uintptr_t) { \
    tokitai::undefined(KIND, *place, TOKITAI_SPOT, WORDS);                              \
  }
TOKITAI_UNDEFINED(load_invalid_value, "invalid-value",
                  "a value that its type does not have is read")
TOKITAI_UNDEFINED(vla_bound_not_positive, "array-bound", "an array of no or negative length")
TOKITAI_UNDEFINED(pointer_overflow, "pointer-overflow",
                  "pointer arithmetic leaves the address space")
TOKITAI_UNDEFINED(invalid_builtin, "invalid-builtin",
                  "a builtin function does not take this argument")
TOKITAI_UNDEFINED(nonnull_arg, "null-pointer", "a null pointer is passed where none may be")
TOKITAI_UNDEFINED(nonnull_return_v1, "null-pointer", "a null pointer is returned where none may be")

// Behind these a program does not go on.
#define TOKITAI_ENDING(NAME, WORDS)                                                             \
  extern "C" [[noreturn]] void __ubsan_handle_##NAME(const tokitai::SourcePlace* place) {       \
    tokitai::undefined("unreachable", *place, TOKITAI_SPOT, WORDS);                             \
    tokitai::watch_flush(0, false);                                                             \
    _exit(tokitai::exit_garbage);                                                               \
  }
TOKITAI_ENDING(builtin_unreachable, "comes to a place that is said to be out of reach")
TOKITAI_ENDING(missing_return, "comes to the end of a function that is to return a value")
