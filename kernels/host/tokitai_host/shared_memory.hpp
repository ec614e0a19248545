// Shared memory of the block that an OS thread runs: its fill before each block, and its guards.
//
// Static arrays are thread_local without initial values, so that every OS thread has a copy of each.
// The build widens the place of every array by a guard in front and one behind, and writes their
// sizes into the size of the array's symbol (tokitai_cli/build/guards.py). The executable's own symbol
// table thus says where all arrays and guards are, whatever function, template or struct they are of.
#pragma once

// The harness gives the arrays that a source declares as `extern __shared__` their place.
#define TOKITAI_HOST_DYNAMIC_SHARED 1

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fiber.hpp"

// Local data share of a block: 64 KiB on AMD GPUs, but where the device says more.
#ifndef TOKITAI_SHARED_LIMIT
#define TOKITAI_SHARED_LIMIT 65536
#endif

namespace tokitai {
constexpr size_t shared_limit = TOKITAI_SHARED_LIMIT;
}  // namespace tokitai

extern "C" {
#ifdef TOKITAI_DYNAMIC_SHARED
// Every `extern __shared__` array is this one: the harness defines its symbol as an alias.
alignas(128) thread_local unsigned char tokitai_dynamic_shared[tokitai::shared_limit];
#endif
// An array like any other: where it lies tells where the others do, and that there are guards at all.
alignas(16) thread_local unsigned char tokitai_shared_marker[16];
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
  const Elf64_Sym* symbols;
  size_t symbol_count;
  const char* names;
  const unsigned char* base;  // what the symbols' addresses count from
};
inline SharedLayout shared_layout = {nullptr, 0, 0, SIZE_MAX, "the executable was not read",
                                     nullptr, 0, nullptr, nullptr};

// How much of a guard is looked at after every block; what lies farther, after every launch.
constexpr size_t near_bytes = 1024;

inline SharedArray shared_array(const Elf64_Sym& symbol, const char* name) {
  constexpr unsigned unit = 16;
  return {name, size_t(symbol.st_value), size_t(symbol.st_size & 0xffffffff),
          size_t(symbol.st_size >> 32 & 0xffff) * unit, size_t(symbol.st_size >> 48) * unit};
}

// Puts an array into its place by offset. The several names of dynamic shared memory are one array.
inline void add_shared_array(SharedLayout& layout, const SharedArray& array) {
  if (strcmp(array.symbol, "tokitai_shared_marker") == 0) layout.marker = array.offset;
  if (strcmp(array.symbol, "tokitai_dynamic_shared") == 0) layout.dynamic = array.offset;
  size_t at = layout.count;
  while (at > 0 && layout.arrays[at - 1].offset > array.offset) at--;
  if (at > 0 && layout.arrays[at - 1].offset == array.offset) return;
  memmove(layout.arrays + at + 1, layout.arrays + at, (layout.count - at) * sizeof array);
  layout.arrays[at] = array;
  layout.count++;
}

inline void read_symbols(const unsigned char* file, SharedLayout& layout) {
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(file);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(file + header.e_shoff);
  for (unsigned s = 0; s < header.e_shnum; s++) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(file + sections[s].sh_offset);
    const auto* names = reinterpret_cast<const char*>(file + sections[sections[s].sh_link].sh_offset);
    const size_t count = sections[s].sh_size / sizeof(Elf64_Sym);
    layout.symbols = symbols, layout.symbol_count = count, layout.names = names;
    if (header.e_type == ET_DYN)
      layout.base = reinterpret_cast<const unsigned char*>(getauxval(AT_PHDR)) - header.e_phoff;
    size_t guarded = 0;
    for (size_t i = 0; i < count; i++)
      guarded += ELF64_ST_TYPE(symbols[i].st_info) == STT_TLS && symbols[i].st_size >> 32;
    layout.arrays = static_cast<SharedArray*>(calloc(guarded + 1, sizeof(SharedArray)));
    for (size_t i = 0; layout.arrays && i < count; i++)
      if (ELF64_ST_TYPE(symbols[i].st_info) == STT_TLS && symbols[i].st_size >> 32)
        add_shared_array(layout, shared_array(symbols[i], names + symbols[i].st_name));
  }
}

// Finds the arrays once for the process. The file stays mapped, as names are not copied.
inline void find_shared_arrays(SharedLayout& layout) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) return;
  void* mapped = mmap(nullptr, size_t(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return;
  read_symbols(static_cast<const unsigned char*>(mapped), layout);
  layout.missing = nullptr;
  if (!layout.marker)
    layout.missing = layout.arrays ? "shared arrays were built without guards"
                                   : "the executable has no symbols (-s takes them away)";
}

// Bytes of the arrays that a kernel declares in its own body. Their names hold the function's (Itanium
// C++ ABI, 5.1.6); which functions a kernel calls is not known, so that theirs are not counted.
inline size_t static_shared_bytes(const void* kernel) {
  const SharedLayout& layout = shared_layout;
  const char* owner = nullptr;
  for (size_t i = 0; i < layout.symbol_count && !owner; i++)
    if (ELF64_ST_TYPE(layout.symbols[i].st_info) == STT_FUNC &&
        layout.base + layout.symbols[i].st_value == kernel)
      owner = layout.names + layout.symbols[i].st_name;
  if (!owner || strncmp(owner, "_Z", 2) != 0) return 0;
  const size_t length = strlen(owner + 2);
  size_t bytes = 0;
  for (size_t i = 0; i < layout.count; i++) {
    const char* name = layout.arrays[i].symbol;
    if (strncmp(name, "_ZZ", 3) == 0 && strncmp(name + 3, owner + 2, length) == 0 &&
        name[3 + length] == 'E')
      bytes += layout.arrays[i].bytes;
  }
  return bytes;
}

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
                                            unsigned char fill) {
  any_guard(shared, dynamic_bytes, [=](const SharedArray&, unsigned char* begin, size_t bytes) {
    memset(begin, fill, bytes);
    return false;
  });
}

// Fills the arrays, before each block.
TOKITAI_UNSANITIZED inline void fill_shared(unsigned char* shared, size_t dynamic_bytes,
                                            unsigned char fill) {
  for (size_t i = 0; i < shared_layout.count; i++) {
    const SharedArray& array = shared_layout.arrays[i];
    memset(shared + array.offset, fill, used_bytes(array, dynamic_bytes));
  }
}

// A byte of a guard that is not as it was filled.
struct SharedDamage {
  const SharedArray* array;
  const unsigned char* at;
};

// The first of `bytes` that is not `fill`, or null. Values, not a closure: compilers vectorise it.
TOKITAI_UNSANITIZED inline const unsigned char* first_other(const unsigned char* begin, size_t bytes,
                                                            unsigned char fill) {
  unsigned char differing = 0;
  for (size_t i = 0; i < bytes; i++) differing |= begin[i] ^ fill;
  if (!differing) return nullptr;
  while (*begin == fill) begin++;
  return begin;
}

// The first damage in the first `reach` bytes of each guard; its array is null where there is none.
TOKITAI_UNSANITIZED inline SharedDamage shared_damage(unsigned char* shared, size_t dynamic_bytes,
                                                      unsigned char fill, size_t reach) {
  SharedDamage found = {};
  any_guard(shared, dynamic_bytes, [&](const SharedArray& array, unsigned char* begin, size_t bytes) {
    found = {&array, first_other(begin, bytes < reach ? bytes : reach, fill)};
    return found.at != nullptr;
  });
  if (!found.at) found.array = nullptr;
  return found;
}

}  // namespace tokitai
