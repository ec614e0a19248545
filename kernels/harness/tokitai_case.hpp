// A run request as docs/internals/protocol.md lays it out, parsed and checked.
#pragma once

#include "tokitai_frames.hpp"
#include "tokitai_program.hpp"

namespace tokitai {

enum class Kind : Word { input, output, inout, workspace, symbol, list, structure };
// kept: what stands in the region, in front of the first repetition.
enum class Fill : Word { nothing, pattern, zero, content, zero_once, kept };
enum class Status : Word {
  ok,
  runtime_error,
  argument_misfit,
  out_of_memory,
  device_lost,
  divergence,
  fault,
  not_modelled,
};

constexpr Word opcode_run = 1;
constexpr Word in_symbol = 1 << 8;  // beside the kind of a result
constexpr unsigned char guard_fill = 0xC3;
constexpr size_t fill_bytes = 16372;  // of a fill, which then repeats: 4093 words

struct Buffer {
  Kind kind;
  Word bytes;
  Fill fill;
  Word content, region, stride, front, back;
  Word start;  // byte of the fill that the payload begins with
  const Word* targets;  // of a list: what each pointer leads to, index of a buffer and byte of its payload
  unsigned char* room;     // of a struct that a kernel takes by a pointer: what was laid there, struct_limit bytes
  const Parameter* made;   // by whose `make`
  bool is_laid;            // in the present repetition
  bool in_symbol;          // of that kind, or a result that is no argument
  unsigned symbol;         // which of the harness's symbols then
  // Set by the device.
  unsigned char* pointer;  // payload that kernels see in the present repetition
  unsigned char* kept;     // content as the device holds it
  Word mapped_region;
  unsigned char* reserved[3];
  size_t reserved_bytes[3];
  // What the comparison of an input found.
  Word bytes_changed;
  int64_t first_changed;

  bool is_result() const {
    return kind == Kind::output || kind == Kind::inout || kind == Kind::workspace;
  }
  bool is_read_only() const { return kind == Kind::input || kind == Kind::list || room; }
  bool has_content() const { return is_read_only() || kind == Kind::inout || kind == Kind::symbol; }
};

struct Launch {
  Word kernel, grid[3], block[3], shared_bytes, argument_count;
  const Word* arguments;  // pairs of kind and value
};

struct Repetition {
  Word place;  // of its fill in the memory file
  Word seed;
};

struct Case {
  Word number, file_bytes, warmups;
  Word approximation;  // how a device that models instructions within an error evaluates them, from 0
  Array<Repetition> repetitions;
  Array<Buffer> buffers;
  Array<Launch> launches;
  Array<unsigned char> rooms;
  Array<Word> nanoseconds;
  Word repetitions_done = 0;
  bool begun = false;  // a repetition or warm-up was prepared
  Status status = Status::ok;
  char message[16384] = "";

  // Records the first failure; false, so that a caller can return it.
  __attribute__((format(printf, 3, 4))) bool fail(Status why, const char* format, ...) {
    if (status != Status::ok) return false;
    status = why;
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    return false;
  }
};

// Takes word after word from a frame; reading past its end makes the frame garbage.
struct WordReader {
  const Word* next;
  size_t left;
  bool ok = true;
  Word take() {
    if (left == 0) {
      ok = false;
      return 0;
    }
    left--;
    return *next++;
  }
  // A count of items of at least `words` words each, which must still be there.
  size_t take_count(size_t words) {
    const Word count = take();
    if (count > left / words) {
      ok = false;
      return 0;
    }
    return size_t(count);
  }
};

// Whether [offset - front, offset + bytes + back) lies inside the memory file.
inline bool lies_inside(const Case& request, Word offset, Word bytes, Word front, Word back) {
  const Word size = request.file_bytes;
  return front <= offset && offset <= size && bytes <= size - offset &&
         back <= size - offset - bytes;
}

inline bool buffer_is_sound(const Case& request, const Buffer& buffer) {
  if (Word(buffer.kind) > Word(Kind::structure) || Word(buffer.fill) > Word(Fill::kept)) return false;
  const bool is_struct = buffer.kind == Kind::structure;
  if (is_struct && buffer.bytes != struct_limit) return false;
  if ((buffer.has_content() || is_struct) &&
      !lies_inside(request, buffer.content, buffer.bytes, buffer.front, buffer.back))
    return false;
  if (buffer.fill == Fill::content && !buffer.has_content()) return false;
  if (buffer.in_symbol && (buffer.is_read_only() || buffer.kind == Kind::workspace)) return false;
  if (buffer.start >= fill_bytes) return false;
  if (buffer.fill >= Fill::zero_once && buffer.stride != 0) return false;
  if (!buffer.is_result()) return buffer.fill == Fill::nothing;
  const Word last = request.repetitions.count - 1;
  Word offset;
  if (__builtin_mul_overflow(last, buffer.stride, &offset) ||
      __builtin_add_overflow(offset, buffer.region, &offset))
    return false;
  return buffer.front <= buffer.region &&
         lies_inside(request, offset, buffer.bytes, buffer.front, buffer.back);
}

inline bool launch_is_sound(const Program& program, const Case& request, const Launch& launch) {
  if (launch.kernel >= program.kernel_count) return false;
  const KernelEntry& kernel = program.kernels[launch.kernel];
  if (launch.argument_count != kernel.parameter_count) return false;
  for (unsigned i = 0; i < launch.argument_count; i++) {
    const Word kind = launch.arguments[2 * i], value = launch.arguments[2 * i + 1];
    if (kind != Word(kernel.parameters[i].kind)) return false;
    if (kind != Word(Argument::buffer) && kind != Word(Argument::structure)) continue;
    if (value >= request.buffers.count || request.buffers[value].in_symbol) return false;
    const bool is_struct = request.buffers[value].kind == Kind::structure;
    if (is_struct != (kind == Word(Argument::structure))) return false;
    if (is_struct && launch.argument_count - i - 1 < kernel.parameters[i].fields) return false;
  }
  return true;
}

constexpr unsigned target_bits = 48;  // of the byte in a list's target
constexpr Word target_byte = (Word(1) << target_bits) - 1;

inline bool list_is_sound(const Case& request, const Buffer& list) {
  for (Word i = 0; i < list.bytes / sizeof(Word); i++) {
    const Word index = list.targets[i] >> target_bits;
    if (index >= request.buffers.count) return false;
    const Buffer& buffer = request.buffers[index];
    if (buffer.in_symbol || buffer.kind >= Kind::list ||
        (list.targets[i] & target_byte) > buffer.bytes)
      return false;
  }
  return true;
}

// What the pointers of a list are in the present repetition, into `pointers`. They are its content, too, with
// which the list is compared in the end.
inline void point(const Case& request, const Buffer& list, Word* pointers) {
  for (Word i = 0; i < list.bytes / sizeof(Word); i++)
    pointers[i] = reinterpret_cast<Word>(request.buffers[list.targets[i] >> target_bits].pointer +
                                         (list.targets[i] & target_byte));
}

// The words of a launch as its kernel gets them, buffers by their addresses in the present repetition.
inline void point_words(const Case& request, const KernelEntry& kernel, const Launch& launch, Word* words) {
  for (unsigned i = 0; i < launch.argument_count; i++) {
    const Argument kind = kernel.parameters[i].kind;
    const Word value = launch.arguments[2 * i + 1];
    const bool is_buffer = kind == Argument::buffer || kind == Argument::structure;
    words[i] = is_buffer ? reinterpret_cast<Word>(request.buffers[value].pointer) : value;
  }
}

// Structs that a launch's kernel takes by a pointer, as they are to be in the present repetition:
// visit(buffer, its room of struct_limit bytes, by what it was made), until one gives false.
template <class Visit>
inline bool each_struct(const Program& program, Case& request, const Launch& launch, Visit visit) {
  const KernelEntry& kernel = program.kernels[launch.kernel];
  Word words[argument_limit + 1];
  point_words(request, kernel, launch, words);
  for (unsigned i = 0; i < launch.argument_count; i++) {
    const Parameter& parameter = kernel.parameters[i];
    if (!parameter.bytes) continue;
    unsigned char room[struct_limit];
    memset(room, guard_fill, sizeof room);
    parameter.make(room, words + i + 1);
    if (!visit(request.buffers[launch.arguments[2 * i + 1]], room, parameter)) return false;
  }
  return true;
}

// Lays the structs of a launch where they are not yet as they are to be, once what was there has been compared.
// write(buffer): puts its room where the kernel sees it, and into the content.
template <class Device, class Write>
inline bool lay_structs(Device& device, const Program& program, Case& request, const Launch& launch,
                        bool only_first, Write write) {
  return each_struct(
      program, request, launch, [&](Buffer& buffer, const unsigned char* room, const Parameter& parameter) {
        if (buffer.is_laid && (only_first || memcmp(buffer.room, room, struct_limit) == 0)) return true;
        if (buffer.is_laid && !device.compare_input(request, buffer)) return false;
        memcpy(buffer.room, room, struct_limit);
        buffer.is_laid = true;
        buffer.made = &parameter;
        return write(buffer);
      });
}

// A repetition begins: what the last one left in structs is compared, and those of its launches are laid.
template <class Device, class Write>
inline bool lay_first_structs(Device& device, const Program& program, Case& request, Write write) {
  for (Buffer& buffer : request.buffers) {
    if (buffer.is_laid && !device.compare_input(request, buffer)) return false;
    buffer.is_laid = false;
  }
  for (const Launch& launch : request.launches)
    if (!lay_structs(device, program, request, launch, true, write)) return false;
  return true;
}

// Number of the field that has a byte of a struct, from 1; 0 for none.
inline Word field_at(const Parameter& parameter, Word offset) {
  unsigned char plain[struct_limit] = {}, other[struct_limit] = {};
  Word words[argument_limit] = {};
  parameter.make(plain, words);
  for (unsigned field = 0; field < parameter.fields; field++) {
    words[field] = ~Word(0);
    parameter.make(other, words);
    words[field] = 0;
    if (plain[offset] != other[offset]) return field + 1;
  }
  return 0;
}

// Room for each struct that a kernel takes by a pointer. Its payload has the size that the kernel's compiler knows,
// the rest counts as guard.
inline void make_rooms(const Program& program, Case& request) {
  for (const Launch& launch : request.launches)
    for (unsigned i = 0; i < launch.argument_count; i++) {
      const Parameter& parameter = program.kernels[launch.kernel].parameters[i];
      if (!parameter.bytes) continue;
      const Word index = launch.arguments[2 * i + 1];
      Buffer& buffer = request.buffers[index];
      if (buffer.room && buffer.bytes >= parameter.bytes) continue;
      const Word whole = buffer.bytes + buffer.back;
      if (!request.rooms.count) request.rooms.allocate(request.buffers.count * struct_limit);
      buffer.room = request.rooms.items + index * struct_limit;
      buffer.bytes = parameter.bytes;
      buffer.back = whole - buffer.bytes;
    }
}

inline void parse_buffers(WordReader& words, const Program& program, Case& request) {
  request.buffers.allocate(words.take_count(9));
  unsigned symbols = 0;
  for (Buffer& buffer : request.buffers) {
    const Word kind = words.take();
    buffer.kind = Kind(kind & ~in_symbol);
    buffer.in_symbol = buffer.kind == Kind::symbol || kind & in_symbol;
    buffer.bytes = words.take();
    buffer.fill = Fill(words.take());
    buffer.content = words.take();
    buffer.region = words.take();
    buffer.stride = words.take();
    buffer.front = words.take();
    buffer.back = words.take();
    buffer.start = words.take();
    if (buffer.in_symbol) buffer.symbol = symbols++;
    if (buffer.kind == Kind::list) {
      const Word count = buffer.bytes / sizeof(Word);
      words.ok = words.ok && buffer.bytes % sizeof(Word) == 0 && count <= words.left;
      if (!words.ok) return;
      buffer.targets = words.next;
      words.next += count;
      words.left -= count;
    }
    words.ok = words.ok && buffer_is_sound(request, buffer);
  }
  for (Buffer& buffer : request.buffers)
    words.ok = words.ok && (buffer.kind != Kind::list || list_is_sound(request, buffer));
  words.ok = words.ok && symbols <= program.symbol_count;
}

inline void parse_launches(WordReader& words, const Program& program, Case& request) {
  request.launches.allocate(words.take_count(9));
  for (Launch& launch : request.launches) {
    launch.kernel = words.take();
    for (Word& extent : launch.grid) extent = words.take();
    for (Word& extent : launch.block) extent = words.take();
    launch.shared_bytes = words.take();
    launch.argument_count = words.take_count(2);
    launch.arguments = words.next;
    if (!words.ok) return;
    words.next += 2 * launch.argument_count;
    words.left -= 2 * launch.argument_count;
    words.ok = launch_is_sound(program, request, launch);
    if (!words.ok) return;
  }
}

// Fills `request` from a frame's words; false where the frame has another shape.
inline bool parse_case(const Word* frame, size_t count, const Program& program, Case& request) {
  WordReader words = {frame, count};
  if (words.take() != opcode_run) return false;
  request.number = words.take();
  request.file_bytes = words.take();
  const Word warmups = words.take();
  request.warmups = warmups & 0xffffffff;
  request.approximation = warmups >> 32;
  request.repetitions.allocate(words.take_count(2));
  if (request.repetitions.count == 0) return false;
  request.nanoseconds.allocate(request.repetitions.count);
  for (Repetition& repetition : request.repetitions) {
    repetition.place = words.take();
    repetition.seed = words.take();
    words.ok = words.ok && lies_inside(request, repetition.place, fill_bytes, 0, 0);
  }
  parse_buffers(words, program, request);
  if (words.ok) parse_launches(words, program, request);
  if (words.ok) make_rooms(program, request);
  return words.ok && words.left == 0;
}

}  // namespace tokitai
