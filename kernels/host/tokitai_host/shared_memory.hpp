// Shared memory of the block that an OS thread runs, and its fill before each block.
//
// Static arrays are thread_local and zero at first, so the linker gathers them in .tbss, of which
// every OS thread has a copy. Nothing else lies there: the runtime's own thread-local variables have
// initial values (.tdata) and shared libraries have storage of their own. Filling the copy of .tbss
// thus fills every static array without knowing its name.
#pragma once

// The harness gives the arrays that a source declares as `extern __shared__` their place.
#define TOKITAI_HOST_DYNAMIC_SHARED 1

#include <link.h>

#include "fiber.hpp"

// Local data share of a block: 64 KiB on every AMD GPU up to gfx942 and gfx12.
#ifndef TOKITAI_SHARED_LIMIT
#define TOKITAI_SHARED_LIMIT 65536
#endif

namespace tokitai {
constexpr size_t shared_limit = TOKITAI_SHARED_LIMIT;
constexpr size_t shared_guard = 256;  // bytes behind dynamic shared memory that must stay as they are
constexpr unsigned char guard_byte = 0xC3;
}  // namespace tokitai

// Every `extern __shared__` array is this one: the harness defines its symbol as an alias.
extern "C" {
alignas(128) thread_local unsigned char
    tokitai_dynamic_shared[tokitai::shared_limit + tokitai::shared_guard];
}

namespace tokitai {

struct Marker {
  u64 words[2];
  bool operator==(const Marker& other) const {
    return words[0] == other.words[0] && words[1] == other.words[1];
  }
};
static thread_local Marker shared_marker = {{0x746f6b6974616921ull, 0x9e3779b97f4a7c15ull}};

struct Range {
  unsigned char* begin;
  size_t bytes;
};

// Static shared memory of the calling OS thread: .tbss in front of and behind the dynamic array.
struct StaticShared {
  Range parts[2];
};

// The initial image of thread-local storage holds the marker's first value; where it stands there,
// compared with where the marker is in this thread, gives this thread's copy of the image.
TOKITAI_UNSANITIZED inline int find_static_shared(struct dl_phdr_info* program, size_t, void* found) {
  StaticShared& shared = *static_cast<StaticShared*>(found);
  for (int i = 0; i < program->dlpi_phnum; i++) {
    const auto& segment = program->dlpi_phdr[i];
    if (segment.p_type != PT_TLS) continue;
    const auto* image = reinterpret_cast<const unsigned char*>(program->dlpi_addr + segment.p_vaddr);
    for (size_t at = 0; at + sizeof(Marker) <= segment.p_filesz; at += alignof(Marker)) {
      if (!(*reinterpret_cast<const Marker*>(image + at) == shared_marker)) continue;
      unsigned char* copy = reinterpret_cast<unsigned char*>(&shared_marker) - at;
      unsigned char* begin = copy + segment.p_filesz;
      unsigned char* end = copy + segment.p_memsz;
      unsigned char* dynamic = tokitai_dynamic_shared;
      unsigned char* behind = dynamic + sizeof tokitai_dynamic_shared;
      shared.parts[0] = {begin, size_t(dynamic - begin)};
      shared.parts[1] = {behind, size_t(end - behind)};
      return 1;
    }
  }
  return 1;  // the first object is the executable; others are of no interest
}

TOKITAI_UNSANITIZED inline StaticShared static_shared() {
  StaticShared shared = {};
#if !(defined(__clang__) && (defined(TOKITAI_ASAN) || defined(TOKITAI_TSAN)))
  // clang links the sanitizers' runtimes, with state of their own in .tbss, into the executable.
  dl_iterate_phdr(find_static_shared, &shared);
#endif
  return shared;
}

TOKITAI_UNSANITIZED inline void fill_shared(const StaticShared& shared, size_t dynamic_bytes,
                                            unsigned char fill) {
  for (const Range& part : shared.parts)
    if (part.bytes) memset(part.begin, fill, part.bytes);
#ifdef TOKITAI_DYNAMIC_SHARED
  memset(tokitai_dynamic_shared, fill, dynamic_bytes);
  memset(tokitai_dynamic_shared + dynamic_bytes, guard_byte, shared_guard);
#else
  (void)dynamic_bytes;
#endif
}

// Whether a block wrote just behind the dynamic shared memory that its launch asked for.
TOKITAI_UNSANITIZED inline bool shared_overrun(size_t dynamic_bytes) {
#ifdef TOKITAI_DYNAMIC_SHARED
  for (size_t i = 0; i < shared_guard; i++)
    if (tokitai_dynamic_shared[dynamic_bytes + i] != guard_byte) return true;
#else
  (void)dynamic_bytes;
#endif
  return false;
}

}  // namespace tokitai
