// Shared memory of the block that an OS thread runs: its fill before each block, and its guards.
//
// Static arrays are thread_local without initial values, so that every OS thread has a copy of each.
// The build widens the place of every array by a guard in front and one behind, and writes their
// sizes into the size of the array's symbol (tokitai_cli/build/guards.py). The executable's own symbol
// table thus says where all arrays and guards are, whatever function, template or struct they are of.
#pragma once

// The harness gives the arrays that a source declares as `extern __shared__` their place.
#define TOKITAI_HOST_DYNAMIC_SHARED 1

#include "fiber.hpp"
#include "fill.hpp"

// Local data share of a block: 64 KiB on AMD GPUs, but where the device says more.
#ifndef TOKITAI_SHARED_LIMIT
#define TOKITAI_SHARED_LIMIT 65536
#endif

namespace tokitai {
constexpr size_t shared_limit = TOKITAI_SHARED_LIMIT;
}  // namespace tokitai

// Arrays lie in the unit of the kernels; __thread makes the other unit reach them without a call.
extern "C" {
// An array like any other: where it lies tells where the others do, and that there are guards at all.
extern __thread unsigned char tokitai_shared_marker[16];
#ifdef TOKITAI_KERNEL_UNIT
alignas(16) __thread unsigned char tokitai_shared_marker[16];
#ifdef TOKITAI_DYNAMIC_SHARED
// Every `extern __shared__` array is this one: the harness defines its symbol as an alias.
alignas(128) __thread unsigned char tokitai_dynamic_shared[tokitai::shared_limit];
#endif
#endif
}

namespace tokitai {

// An array and its guards, in bytes from where thread-local storage begins.
struct SharedArray {
  const char* symbol;
  size_t offset, bytes, front, back;
};

struct SharedLayout {
  SharedArray* arrays;  // by offset
  size_t count, marker, dynamic;
  const char* missing;  // why arrays and guards are not known
};
inline SharedLayout shared_layout = {nullptr, 0, 0, SIZE_MAX, "the executable was not read"};

// How much of a guard is looked at after every block; what lies farther, after every launch.
constexpr size_t near_bytes = 1024;

// The copy of thread-local storage that the calling OS thread has.
TOKITAI_UNSANITIZED inline unsigned char* own_shared() {
  return tokitai_shared_marker - shared_layout.marker;
}

// Bytes of an array that a launch gives its blocks.
TOKITAI_UNSANITIZED inline size_t used_bytes(const SharedArray& array, size_t dynamic_bytes) {
  return array.offset == shared_layout.dynamic ? dynamic_bytes : array.bytes;
}

// Calls `visit` with the two guards of every array, from the lowest address on, until it says true.
template <class Visit>
TOKITAI_UNSANITIZED inline bool any_guard(unsigned char* shared, size_t dynamic_bytes, Visit visit) {
  for (size_t i = 0; i < shared_layout.count; i++) {
    const SharedArray& array = shared_layout.arrays[i];
    unsigned char* begin = shared + array.offset;
    const size_t used = used_bytes(array, dynamic_bytes);
    if (visit(array, begin - array.front, array.front)) return true;
    if (visit(array, begin + used, array.bytes - used + array.back)) return true;
  }
  return false;
}

// Fills the guards, at the beginning of a launch on this OS thread.
TOKITAI_UNSANITIZED inline void fill_guards(unsigned char* shared, size_t dynamic_bytes,
                                            const FillPattern& fill) {
  any_guard(shared, dynamic_bytes, [=](const SharedArray&, unsigned char* begin, size_t bytes) {
#ifdef TOKITAI_ASAN
    (void)fill;
    __asan_poison_memory_region(begin, bytes);
#else
    write_fill(begin, bytes, fill, size_t(begin - shared));
#endif
    return false;
  });
}

// Fills the arrays, before each block.
TOKITAI_UNSANITIZED inline void fill_shared(unsigned char* shared, size_t dynamic_bytes,
                                            const FillPattern& fill) {
  for (size_t i = 0; i < shared_layout.count; i++) {
    const SharedArray& array = shared_layout.arrays[i];
#ifdef TOKITAI_ASAN
    __asan_unpoison_memory_region(shared + array.offset, used_bytes(array, dynamic_bytes));
#endif
    write_fill(shared + array.offset, used_bytes(array, dynamic_bytes), fill, array.offset);
  }
}

// A byte of a guard that is not as it was filled.
struct SharedDamage {
  const SharedArray* array;
  const unsigned char* at;
};

// The first damage in the first `reach` bytes of each guard; its array is null where there is none.
TOKITAI_UNSANITIZED inline SharedDamage shared_damage(unsigned char* shared, size_t dynamic_bytes,
                                                      const FillPattern& fill, size_t reach) {
  SharedDamage found = {};
#ifdef TOKITAI_ASAN
  return found;  // guards are poisoned, and accesses to them told by themselves
#endif
  any_guard(shared, dynamic_bytes, [&](const SharedArray& array, unsigned char* begin, size_t bytes) {
    const auto differs = [&](const unsigned char* at, const unsigned char* want, size_t part) {
      if (memcmp(at, want, part) == 0) return false;
      while (*at == *want) at++, want++;
      found = {&array, at};
      return true;
    };
    return any_part(begin, bytes < reach ? bytes : reach, fill, size_t(begin - shared), differs);
  });
  return found;
}

}  // namespace tokitai
