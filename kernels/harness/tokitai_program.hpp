// What the unit of the kernels and the unit that serves them share: tables of kernels and symbols.
#pragma once

#include <stdint.h>

namespace tokitai {

using Word = uint64_t;

enum class Argument : Word { buffer, scalar, integer, structure };
constexpr unsigned argument_limit = 512;  // as much as the 4 KiB that a HIP kernel takes
constexpr unsigned payload_alignment = 4096;

constexpr unsigned struct_limit = 4096;  // bytes of a struct that a kernel takes by a pointer

// One word of a kernel's signature as the harness was generated for it: a parameter, or a place in a struct.
// The fields of a struct follow its own word.
struct Parameter {
  Argument kind;
  const char* place;  // "2", or "2.inner.n" in a struct
  int64_t lowest;  // range of the kernel's own type, for an integer
  Word highest;
  // Of a struct that the kernel takes by a pointer: its bytes, its fields, and how it is made of their words.
  unsigned bytes, fields;
  void (*make)(unsigned char* to, const Word* words);
};

struct KernelEntry {
  const char* name;
  unsigned parameter_count;
  const Parameter* parameters;
  unsigned thread_bound;  // of __launch_bounds__; 0 where the source's text does not tell
  const struct DeviceKernel* device;  // how this kind of device starts it
};

struct SymbolEntry {
  const char* name;
  Word bytes;
  const void* device;  // what this kind of device finds the symbol by
};

// The tables of the unit that holds the kernels.
struct Program {
  const KernelEntry* kernels;
  unsigned kernel_count;
  const SymbolEntry* symbols;
  unsigned symbol_count;
};

}  // namespace tokitai

// A function, as no compiler makes one of host code for a GPU.
const tokitai::Program& tokitai_program();
