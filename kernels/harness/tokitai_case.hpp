// A run request as docs/internals/protocol.md lays it out, parsed and checked.
#pragma once

#include "tokitai_frames.hpp"
#include "tokitai_program.hpp"

namespace tokitai {

enum class Kind : Word { input, output, inout, workspace, symbol, list };
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
  bool is_read_only() const { return kind == Kind::input || kind == Kind::list; }
  bool has_content() const { return kind != Kind::output && kind != Kind::workspace; }
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
  if (Word(buffer.kind) > Word(Kind::list) || Word(buffer.fill) > Word(Fill::kept)) return false;
  if (buffer.has_content() &&
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
    if (kind == Word(Argument::buffer) &&
        (value >= request.buffers.count || request.buffers[value].in_symbol))
      return false;
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
    if (buffer.in_symbol || buffer.kind == Kind::list ||
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
  return words.ok && words.left == 0;
}

}  // namespace tokitai
