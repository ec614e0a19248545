// Which arrays of shared memory there are, read from the executable's own symbol table.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared_memory.hpp"

namespace tokitai {

struct SymbolTable {
  const Elf64_Sym* symbols;
  size_t count;
  const char* names;
  const unsigned char* base;  // what the symbols' addresses count from
};
inline SymbolTable symbol_table = {};

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
    symbol_table = {symbols, count, names, nullptr};
    if (header.e_type == ET_DYN)
      symbol_table.base = reinterpret_cast<const unsigned char*>(getauxval(AT_PHDR)) - header.e_phoff;
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
  const SymbolTable& table = symbol_table;
  const char* owner = nullptr;
  for (size_t i = 0; i < table.count && !owner; i++)
    if (ELF64_ST_TYPE(table.symbols[i].st_info) == STT_FUNC &&
        table.base + table.symbols[i].st_value == kernel)
      owner = table.names + table.symbols[i].st_name;
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

}  // namespace tokitai
