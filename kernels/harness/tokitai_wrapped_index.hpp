// An address that a 32-bit index gives which wrapped around: 2^32 elements away from where it would be.
#pragma once

#include <stdint.h>
#include <stdio.h>

namespace tokitai {

struct WrappedIndex {
  unsigned element = 0;  // bytes; 0 where no array was near
  bool above = false;
  uint64_t distance = 1 << 16;  // from the array to where the address would be, in bytes: less than this
};

// Whether the address is 2^32 elements of 1 to 16 bytes away from an array's bytes, or from some nearer to them
// than `found` is. Notes it there.
inline bool wraps_nearer(uint64_t address, uint64_t begin, uint64_t end, WrappedIndex& found) {
  bool nearer = false;
  for (unsigned element = 1; element <= 16; element *= 2) {
    for (const bool above : {true, false}) {
      const uint64_t far = uint64_t(element) << 32, moved = above ? address - far : address + far;
      const uint64_t distance = moved < begin ? begin - moved : moved > end ? moved - end : 0;
      if (distance >= found.distance) continue;
      found = {element, above, distance};
      nearer = true;
    }
  }
  return nearer;
}

// "2^32 elements of 4 bytes past the end of", in front of the array's name; what it means follows that.
inline void words_of(const WrappedIndex& found, char* text, size_t size) {
  snprintf(text, size, "2^32 elements of %u byte%s %s", found.element, found.element == 1 ? "" : "s",
           found.above ? "past the end of" : "before");
}
constexpr const char* wrapped_around = "a 32-bit index that wrapped around";

}  // namespace tokitai
