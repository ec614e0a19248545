// What a watched build finds while kernels run, and the log that the tool reads it from.
//
// A finding is told once for each kind and pair of places, with how often it was seen and who did
// it first. Places are addresses in the executable, which the tool looks up in its debug
// information: so an inline function of a header is told at the line of the kernel that calls it.
//
// Lines of the log, fields parted by tabs: "program PATH", once; "finding KEY=VALUE ...", and "case
// NUMBER" at the end of each case, behind its findings.
#pragma once

#include <cxxabi.h>
#include <execinfo.h>
#include <link.h>

#include "tokitai_faults.hpp"
#include "tokitai_host/launch.hpp"

extern "C" const char __executable_start;

namespace tokitai {

// A GPU thread, and where in the executable it was: the innermost frame first.
struct Spot {
  static constexpr unsigned limit = 8;
  Coordinates block, thread;
  uint32_t frames[limit];
};

// Memory that kernels may use, and what is known of each byte of it.
struct Area {
  enum class Kind : unsigned char { buffer, shared, variable } kind;
  unsigned index;  // of the buffer
  unsigned char* begin;
  size_t bytes;
  const char* symbol;  // of a shared array
  // The watch of accesses alone has these.
  struct Cell* cells;
  size_t reserved;
  unsigned granule;        // bytes of a cell, as a power of two
  unsigned char* written;  // one byte for each, or null where all were written before the launch
  size_t front, back;      // bytes around it that are no array's
};

struct Finding {
  const char* kind;
  char message[320];
  const char* kernel;
  const char* file;  // and line, where the source says it
  unsigned line;
  Spot first, second;
  bool has_second, mixed;
  bool mild;         // refutes nothing
  bool of_writes;    // each time two plain writes: then `unequal` counts those of different values
                     // and `nonzero` those of a value that is not zero
  bool of_volatile;  // each time two volatile accesses
  uint64_t count, unequal, nonzero;
  bool plain_writes;    // of a mixed one: the plain access writes, at least once
  uint32_t plain_read;  // and its instruction where it reads
  char array[200];  // "buffer N", "shared NAME" or "variable NAME", and its element
  int64_t offset;   // in bytes from its begin
  size_t bytes, size;
};

struct Watch {
  static constexpr unsigned limit = 64;
  int log = -1;
  bool running = false;  // a launch is on
  Area areas[512];
  unsigned area_count = 0;
  Finding findings[limit];
  unsigned count = 0;
  uint64_t reports = 0, left_out = 0;  // of places beyond the limit
};
inline Watch watch;

inline const char* exe_base() { return &__executable_start; }

// Offset of an address in the executable; 0 where it is not its own.
inline uint32_t offset_of(const void* pc) {
  const auto distance = reinterpret_cast<const char*>(pc) - exe_base();
  return distance > 0 && distance < (int64_t(1) << 31) ? uint32_t(distance) : 0;
}

// `pc` and its callers, along the frame pointers that the running thread's stack holds.
inline void frames_at(const void* pc, void* const* frame, uint32_t* frames, unsigned limit) {
  frames[0] = offset_of(pc);
  const Block* block = current_block;
  if (block == no_block || !block->running) return;
  const char* low = block->running->stack;
  for (unsigned i = 1; i < limit; i++) {
    const char* at = reinterpret_cast<const char*>(frame);
    if (!low || at < low || at + 16 > low + stack_bytes || uintptr_t(at) % sizeof(void*)) break;
    if (!frame[1]) break;
    frames[i] = offset_of(static_cast<const char*>(frame[1]) - 1);
    if (static_cast<void* const*>(frame[0]) <= frame) break;
    frame = static_cast<void* const*>(frame[0]);
  }
}

inline Spot spot_at(const void* pc, void* const* frame) {
  Spot spot = {blockIdx, threadIdx, {}};
  frames_at(pc, frame, spot.frames, Spot::limit);
  return spot;
}

// Where the function was called that this stands in.
#define TOKITAI_SPOT                                                    \
  tokitai::spot_at(static_cast<char*>(__builtin_return_address(0)) - 1, \
                   static_cast<void* const*>(__builtin_frame_address(0)))

inline void append_spot(Text& text, const char* name, const Spot& spot) {
  append(text, "\t%sthread=block (%u,%u,%u), thread (%u,%u,%u)\t%sframes=", name, spot.block.x,
         spot.block.y, spot.block.z, spot.thread.x, spot.thread.y, spot.thread.z, name);
  for (unsigned i = 0; i < Spot::limit && spot.frames[i]; i++)
    append(text, i ? ",%x" : "%x", spot.frames[i]);
}

inline void watch_write(const char* text, size_t size) {
  if (watch.log >= 0 && write(watch.log, text, size) < 0) watch.log = -1;
}

// Writes what was found and forgets it. `done`: the case came to its end.
inline void watch_flush(Word number, bool done) {
  static char line[2048];
  for (unsigned i = 0; i < watch.count; i++) {
    const Finding& found = watch.findings[i];
    Text text = {line, sizeof line, 0};
    append(text, "finding\tkind=%s\tmessage=%s\tkernel=%s\tcount=%llu\tlower=%d", found.kind,
           found.message, found.kernel, (unsigned long long)found.count,
           found.mild);
    if (found.file) append(text, "\tfile=%s\tline=%u", found.file, found.line);
    if (*found.array)
      append(text, "\tarray=%s\toffset=%lld\tbytes=%zu\tsize=%zu", found.array,
             (long long)found.offset, found.bytes, found.size);
    append_spot(text, "", found.first);
    if (found.has_second) append_spot(text, "other_", found.second);
    append(text, "\n");
    watch_write(line, text.used);
  }
  watch.count = 0;
  Text text = {line, sizeof line, 0};
  if (watch.left_out)
    append(text, "finding\tkind=left-out\tmessage=found at other places than the first %u\tcount=%llu\n",
           Watch::limit, (unsigned long long)watch.left_out);
  watch.left_out = 0;
  watch_write(line, text.used);
  if (!done) return;
  text = {line, sizeof line, 0};
  append(text, "case\t%llu\n", (unsigned long long)number);
  watch_write(line, text.used);
}

inline bool watch_open(const char* path) {
  watch.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (watch.log < 0 || length < 0) return false;
  program[length] = 0;
  char line[4200];
  Text text = {line, sizeof line, 0};
  append(text, "program\t%s\n", program);
  watch_write(line, text.used);
  return true;
}

constexpr unsigned compared_frames = 4;
inline bool same_place(const Spot& a, const Spot& b) {
  return memcmp(a.frames, b.frames, compared_frames * sizeof *a.frames) == 0;
}
inline bool same_places(const Finding& known, const Spot& first, const Spot* second) {
  if (!second) return !known.has_second && same_place(known.first, first);
  return known.has_second &&
         ((same_place(known.first, first) && same_place(known.second, *second)) ||
          (same_place(known.first, *second) && same_place(known.second, first)));
}

// The finding of this kind at these places; its count is 1 where it is new. Null where no more are
// kept.
inline Finding* finding(const char* kind, const Spot& first, const Spot* second) {
  watch.reports++;
  for (unsigned i = 0; i < watch.count; i++) {
    Finding& known = watch.findings[i];
    if (strcmp(known.kind, kind) != 0 || !same_places(known, first, second)) continue;
    known.count++;
    return &known;
  }
  if (watch.count == Watch::limit) {
    watch.left_out++;
    return nullptr;
  }
  Finding& made = watch.findings[watch.count++];
  made = {};
  made.kind = kind;
  made.kernel = current_block == no_block ? "" : current_block->work->kernel;
  made.first = first;
  if (second) made.second = *second;
  made.has_second = second != nullptr;
  made.count = 1;
  return &made;
}

__attribute__((format(printf, 2, 3))) inline void say(Finding& found, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(found.message, sizeof found.message, format, values);
  va_end(values);
}

inline void append_words(Finding& found, const char* words) {
  const size_t used = strlen(found.message);
  snprintf(found.message + used, sizeof found.message - used, "%s", words);
}

inline const char* plain_name(const char* symbol, char* buffer, size_t size) {
  int status = 0;
  char* whole = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  const char* name = whole ? whole : symbol;
  for (const char* next = strstr(name, "::"); next; next = strstr(name, "::")) name = next + 2;
  snprintf(buffer, size, "%s", name);
  free(whole);
  return buffer;
}

// The object of the executable's own that an address lies in or right behind; null for none.
inline const Elf64_Sym* object_at(const unsigned char* address) {
  const Elf64_Sym* nearest = nullptr;
  for (size_t i = 0; i < symbol_table.count; i++) {
    const Elf64_Sym& symbol = symbol_table.symbols[i];
    const unsigned char* begin = symbol_table.base + symbol.st_value;
    if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && begin <= address &&
        address < begin + symbol.st_size + 64 && (!nearest || nearest->st_value < symbol.st_value))
      nearest = &symbol;
  }
  return nearest;
}

inline void name_area(Finding& found, const Area& area, int64_t offset, size_t size) {
  char name[160];
  found.offset = offset;
  found.bytes = area.bytes;
  found.size = size;
  if (area.kind == Area::Kind::buffer) {
    snprintf(found.array, sizeof found.array, "buffer %u", area.index);
  } else if (area.kind == Area::Kind::shared) {
    if (!area.symbol)
      snprintf(found.array, sizeof found.array, "shared dynamic shared memory");
    else
      snprintf(found.array, sizeof found.array, "shared %s",
               plain_name(area.symbol, name, sizeof name));
  } else if (const Elf64_Sym* object = object_at(area.begin + offset)) {
    snprintf(found.array, sizeof found.array, "variable %s",
             plain_name(symbol_table.names + object->st_name, name, sizeof name));
    found.offset = area.begin + offset - symbol_table.base - int64_t(object->st_value);
    found.bytes = object->st_size;
  }
}

// Tells of the buffer or shared array that an address lies in or is nearest to, within 4 GiB.
inline void name_address(Finding& found, const unsigned char* address, size_t size) {
  const Area* nearest = nullptr;
  uint64_t least = uint64_t(1) << 32;
  for (unsigned i = 0; i < watch.area_count; i++) {
    const Area& area = watch.areas[i];
    if (area.kind == Area::Kind::variable) continue;
    const unsigned char* end = area.begin + area.bytes;
    const uint64_t distance = address < area.begin ? uint64_t(area.begin - address)
                              : address >= end     ? uint64_t(address - end) + 1
                                                   : 0;
    if (distance < least) least = distance, nearest = &area;
  }
  if (nearest) name_area(found, *nearest, address - nearest->begin, size);
}

// The same of an address near no array but 2^32 elements from one, which it says.
inline WrappedIndex name_wrapped(Finding& found, const unsigned char* address) {
  WrappedIndex wrapped;
  const uint64_t at = reinterpret_cast<uint64_t>(address);
  for (unsigned i = 0; i < watch.area_count; i++) {
    const Area& area = watch.areas[i];
    const uint64_t begin = reinterpret_cast<uint64_t>(area.begin);
    if (area.kind == Area::Kind::buffer && wraps_nearer(at, begin, begin + area.bytes, wrapped))
      name_area(found, area, address - area.begin, 1);
  }
  return wrapped;
}

// What the launches of a repetition may use: every buffer, and the shared arrays that a launch has.
inline void watch_areas(const Case& request) {
  watch.area_count = 0;
  for (size_t b = 0; b < request.buffers.count; b++) {
    const Buffer& buffer = request.buffers[b];
    if (buffer.pointer && !buffer.in_symbol && watch.area_count < 400)
      watch.areas[watch.area_count++] = {Area::Kind::buffer,
                                         unsigned(b),
                                         buffer.pointer,
                                         size_t(buffer.bytes),
                                         nullptr,
                                         nullptr,
                                         0,
                                         2,
                                         nullptr,
                                         size_t(buffer.front),
                                         size_t(buffer.back)};
  }
}

inline void watch_shared(size_t dynamic_bytes) {
  unsigned char* shared = own_shared();
  unsigned kept = 0;
  while (kept < watch.area_count && watch.areas[kept].kind != Area::Kind::shared) kept++;
  watch.area_count = kept;
  for (size_t i = 0; i < shared_layout.count && watch.area_count < 500; i++) {
    const SharedArray& array = shared_layout.arrays[i];
    const size_t bytes = used_bytes(array, dynamic_bytes);
    const char* symbol = array.offset == shared_layout.dynamic ? nullptr : array.symbol;
    if (bytes && array.offset != shared_layout.marker)
      watch.areas[watch.area_count++] = {Area::Kind::shared,
                                         0,
                                         shared + array.offset,
                                         bytes,
                                         symbol,
                                         nullptr,
                                         0,
                                         2,
                                         nullptr,
                                         array.front,
                                         array.bytes - bytes + array.back};
  }
}

// A launch that could not go on, as the scheduler tells it.
inline void watch_failure(const Work& work) {
  if (work.why == Failure::out_of_memory) return;
  const bool waits = work.why == Failure::too_many_blocks;
  const Spot spot = {blockIdx, threadIdx, {}};
  const char* kind = waits                                           ? "resident-blocks"
                     : work.why != Failure::divergence               ? "out-of-bounds"
                     : strncmp(work.failure, "deadlock", 8) == 0     ? "deadlock"
                     : strstr(work.failure, "mask") == work.failure ||
                             strncmp(work.failure, "divergent mask", 14) == 0
                         ? "mask"
                         : "barrier";
  Finding* found = finding(kind, spot, nullptr);
  if (!found || found->count > 1) return;
  found->mild = waits;
  found->kernel = work.kernel;
  found->file = work.site.file;
  found->line = unsigned(work.site.line);
  say(*found, "%s", work.failure);
}

// A signal, from its handler.
inline void watch_fault(const char* what, const void* address, const void* context) {
  if (current_block == no_block) address = nullptr;
  if (watch.log < 0) return;
  const void* pc = nullptr;
  void* const* frame = nullptr;
#if defined(__x86_64__)
  const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  pc = reinterpret_cast<const void*>(registers[REG_RIP]);
  frame = reinterpret_cast<void* const*>(registers[REG_RBP]);
#elif defined(__aarch64__)
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
  pc = reinterpret_cast<const void*>(registers.pc);
  frame = reinterpret_cast<void* const*>(registers.regs[29]);
#endif
  Finding* found = finding("fault", spot_at(pc, frame), nullptr);
  const auto* at = static_cast<const unsigned char*>(address);
  const WrappedIndex wrapped = found && address ? name_wrapped(*found, at) : WrappedIndex{};
  if (found && address && !wrapped.element) name_address(*found, at, 1);
  const char* access = access_name(static_cast<const ucontext_t*>(context));
  if (wrapped.element) {
    char far[64];
    words_of(wrapped, far, sizeof far);
    found->kind = "out-of-bounds";
    say(*found, "out-of-bounds: %s %s an array: %s", access, far, wrapped_around);
  } else if (found && *found->array) {
    // What the address was differs from run to run.
    found->kind = "out-of-bounds";
    say(*found, "out-of-bounds: %s far from any memory of the kernel's", access);
  } else if (found) {
    say(*found, "%s", what);
  }
  watch_flush(0, false);
}

}  // namespace tokitai
