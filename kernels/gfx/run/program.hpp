// What the unit of translated kernels tells the unit that runs them.
#pragma once

#include "matrix.hpp"
#include "mfma.hpp"
#include "tokitai_program.hpp"

namespace tokitai::gfx {

// Where an argument stands in a kernel's arguments: a word of the request, or what the runtime knows of the
// launch by itself ("hidden" arguments, LLVM, User Guide for AMDGPU Backend, code object V5).
enum class Source : u8 {
  word, block_count_x, block_count_y, block_count_z, group_size_x, group_size_y, group_size_z,
  remainder, grid_dims, dynamic_lds_size, private_base, shared_base, zero,
};
struct Slot {
  Source source;
  u32 index, offset, bytes;
};

// Of an instruction that findings may name.
struct Place {
  u32 at;
  const char *text, *file;
  u32 line;
};

// Of the code object: memory beside the code, at addresses that code knows relative to itself.
struct Segment {
  u64 address, bytes;
  const u8* data;
  u64 data_bytes;
  bool writable;
};
struct Relocation {
  u64 address, addend;  // address: where the sum of the image's own place and the addend is put
};
struct ImageData {
  u64 bytes;  // from address 0 to behind the last segment
  const Segment* segments;
  unsigned segment_count;
  const Relocation* relocations;
  unsigned relocation_count;
};

}  // namespace tokitai::gfx

namespace tokitai {

// A kernel as its descriptor and metadata describe it. Registers of the caller's are -1 where there is none.
struct DeviceKernel {
  void (*run)(gfx::Wave&);
  void (*step)(gfx::Wave&, gfx::u32);  // runs one of the steps
  const gfx::Step* steps;
  gfx::u32 entry, vector_registers, accumulation_registers, lds_bytes, scratch_bytes, argument_bytes;
  int scratch_at, dispatch_at, arguments_at, scratch_size_at, user_registers;
  // What follows those: the block's numbers, how many waves it has, and where the wave's scratch begins.
  bool block_x, block_y, block_z, waves, scratch_offset;
  const gfx::Slot* slots;
  unsigned slot_count;
  const gfx::Place* places;
  unsigned place_count;
  unsigned word_shift;  // of the bytes of the smallest access of global memory, as a power of two
};

}  // namespace tokitai

namespace tokitai::gfx {

// Of the unit of kernels.
extern const ImageData image_data;

// Of the unit that serves: where code lies, for addresses relative to it; ends of a wave that must not be.
u64 code_at(const Wave& w, u64 address);
void trapped(Wave& w, u32 at);
void lost(Wave& w);

}  // namespace tokitai::gfx
