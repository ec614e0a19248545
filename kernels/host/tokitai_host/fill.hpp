// What memory holds before a kernel writes it.
#pragma once

#include <stddef.h>
#include <string.h>

#include "sanitizers.hpp"

namespace tokitai {

// Bytes that repeat. Shared memory has those of its place.
struct FillPattern {
  const unsigned char* bytes;
  size_t period;
};

// Calls `visit` with each part of [begin, begin + bytes) and the pattern's bytes for it.
template <class Visit>
TOKITAI_UNSANITIZED inline bool any_part(unsigned char* begin, size_t bytes, const FillPattern& fill,
                                         size_t place, Visit visit) {
  for (place %= fill.period; bytes; place = 0) {
    const size_t rest = fill.period - place, part = bytes < rest ? bytes : rest;
    if (visit(begin, fill.bytes + place, part)) return true;
    begin += part;
    bytes -= part;
  }
  return false;
}

TOKITAI_UNSANITIZED inline void write_fill(unsigned char* begin, size_t bytes, const FillPattern& fill,
                                           size_t place) {
  any_part(begin, bytes, fill, place,
           [](unsigned char* to, const unsigned char* from, size_t part) {
             memcpy(to, from, part);
             return false;
           });
}

}  // namespace tokitai
