// Every value of a kernel, as -fsanitize=kernel-memory has Clang follow it: what comes of a local
// variable that nothing has set, and decides a branch or an address or stays in an output.
//
// No runtime is linked: these are the callbacks (LLVM, MemorySanitizer.cpp, createKernelApi).
// Beside each byte of memory lies one whose bits are set where those of the byte were never set,
// and beside each four bytes the number of an origin: the variable, and the place that stored the
// value last. Values travel with arguments, results and shuffles; a copy alone is no finding. One
// OS thread runs all blocks.
#pragma once

#include "tokitai_watch.hpp"

namespace tokitai {

struct Pair {
  void *unset, *origin;
};

namespace {  // so that no instrumented copy of a function of these types is taken by the linker

// Where a value comes from that was never set: the variable's declaration (its own root), or the
// place that stored it.
struct Origin {
  uint32_t root;
  uint64_t key;
  const char *variable, *kernel;
  Spot at;
};

// What is known of 16 MiB of memory: as many bytes of bits, and behind them as many of origins.
struct Chunk {
  static constexpr unsigned shift = 24;
  static constexpr size_t bytes = size_t(1) << shift;
  uintptr_t number;
  unsigned char* known;
};

struct Values {
  static constexpr unsigned chunk_limit = 1 << 14, origin_limit = 1 << 14;
  Chunk chunks[chunk_limit];  // open addressing, by their numbers
  static constexpr unsigned latest_limit = 256;
  Chunk latest[latest_limit];
  struct {
    uint32_t pc, origin;
  } variables[1 << 12];  // that were declared last
  Origin origins[origin_limit];
  uint32_t places[2 * origin_limit];  // open addressing, by the origins' keys
  uint32_t origin_count = 1;
  struct {  // layout of LLVM's kmsan_context_state
    uint64_t parameters[100], result[100], variadic[100], variadic_origins[100], overflow;
    uint32_t parameter_origins[200], result_origin;
  } state;
  // Of each thread of the block: what it gives to a shuffle, and what it takes.
  struct Word {
    u64 unset;
    uint32_t origin;
  } given[block_limit], taken[block_limit];
};
Values values;

inline Chunk& latest_of(uintptr_t number) {
  return values.latest[(number ^ number >> 8) % Values::latest_limit];
}

__attribute__((noinline)) unsigned char* find_chunk(uintptr_t number) {
  for (size_t at = size_t(mixed(number)), tries = 0;; at++, tries++) {
    Chunk& chunk = values.chunks[at % Values::chunk_limit];
    if (chunk.number && chunk.number != number && tries < Values::chunk_limit) continue;
    if (chunk.number != number) {
      void* memory = mmap(nullptr, 2 * Chunk::bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (chunk.number || memory == MAP_FAILED)
        end_with(exit_garbage, "no memory to watch values in");
      chunk = {number, static_cast<unsigned char*>(memory)};
    }
    latest_of(number) = chunk;
    return chunk.known;
  }
}

__attribute__((always_inline)) inline Pair known_of(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const uintptr_t number = (at >> Chunk::shift) + 1;  // 0 is an empty place
  const Chunk& latest = latest_of(number);
  unsigned char* known =
      __builtin_expect(latest.number == number, 1) ? latest.known : find_chunk(number);
  const size_t offset = at % Chunk::bytes;
  return {known + offset, known + Chunk::bytes + offset / 4 * 4};
}

__attribute__((noinline)) Pair known_nothing(size_t size) {
  static unsigned char nothing[1 << 16];
  if (size <= sizeof nothing / 2) memset(nothing, 0, sizeof nothing);
  return {nothing, nothing + sizeof nothing / 2};
}

// An access over the end of a chunk, which no variable's is, counts as one of what was set.
__attribute__((always_inline)) inline Pair known_of(const void* address, size_t size) {
  const size_t offset = reinterpret_cast<uintptr_t>(address) % Chunk::bytes;
  return __builtin_expect(offset + size <= Chunk::bytes, 1) ? known_of(address)
                                                            : known_nothing(size);
}

// Calls `visit` with the parts of memory that lie in one chunk each.
template <class Visit>
void each_part(const void* address, size_t size, Visit visit) {
  const auto* at = static_cast<const unsigned char*>(address);
  while (size) {
    const size_t rest = Chunk::bytes - reinterpret_cast<uintptr_t>(at) % Chunk::bytes;
    const size_t part = size < rest ? size : rest;
    visit(at, part, known_of(at));
    at += part;
    size -= part;
  }
}

void mark(const void* address, size_t size, int unset, uint32_t origin) {
  each_part(address, size, [=](const unsigned char* at, size_t part, Pair known) {
    memset(known.unset, unset, part);
    auto* origins = static_cast<uint32_t*>(known.origin);
    const size_t words = (reinterpret_cast<uintptr_t>(at) % 4 + part + 3) / 4;
    if (unset)
      for (size_t i = 0; i < words; i++) origins[i] = origin;
  });
}
void mark_set(const void* address, size_t size) { mark(address, size, 0, 0); }

// The first byte of memory that is not set in all of its bits, or null.
const unsigned char* first_unset(const void* address, size_t size) {
  const unsigned char* found = nullptr;
  each_part(address, size, [&](const unsigned char* at, size_t part, Pair known) {
    const auto* unset = static_cast<const unsigned char*>(known.unset);
    for (size_t i = 0; i < part && !found; i++)
      if (unset[i]) found = at + i;
  });
  return found;
}
uint32_t origin_at(const void* address) {
  return *static_cast<uint32_t*>(known_of(address).origin);
}

// The origin with this key, made where it is new; 0 where no more are kept.
template <class Make>
uint32_t origin_of(uint64_t key, Make make) {
  for (size_t at = size_t(mixed(key));; at++) {
    uint32_t& place = values.places[at % (2 * Values::origin_limit)];
    if (place && values.origins[place].key == key) return place;
    if (place) continue;
    if (values.origin_count == Values::origin_limit) return 0;
    place = values.origin_count++;
    values.origins[place] = make(place);
    values.origins[place].key = key;
    return place;
  }
}

// The value of `origin` is stored at `spot`.
uint32_t stored_at(uint32_t origin, const Spot& spot) {
  const uint32_t root = values.origins[origin].root;
  uint64_t key = mixed(root);
  for (uint32_t frame : spot.frames) key = mixed(key ^ frame);
  const uint32_t made = origin_of(
      key, [&](uint32_t) { return Origin{root, 0, nullptr, current_block->work->kernel, spot}; });
  return made ? made : origin;
}

// Whether a kernel's thread runs, and not what serves it.
bool in_kernel() {
  return watch.running && current_block != no_block && current_block->running &&
         current_block->running != &current_block->own;
}

// A finding for each variable, told where it was used first; null where it is known.
Finding* unset_finding(uint32_t origin, const Spot& spot, const char* what) {
  const Origin& root = values.origins[values.origins[origin].root];
  for (unsigned i = 0; i < watch.count; i++) {
    Finding& known = watch.findings[i];
    if (known.second.frames[0] != root.at.frames[0]) continue;
    known.count++;
    return nullptr;
  }
  Finding* found = finding("uninitialised-variable", spot, &root.at);
  if (!found) return nullptr;
  found->second.block = spot.block, found->second.thread = spot.thread;
  const char* name = root.variable ? root.variable : "";
  const bool named = *name && !strpbrk(name, ".") && strcmp(name, "retval") != 0;
  say(*found, "%s depends on %s%s, which nothing has set", what,
      named ? "the local variable " : "a local value", named ? name : "");
  return found;
}

void use_value(const void* address, size_t size, const Spot& spot, const char* what) {
  const unsigned char* at = in_kernel() ? first_unset(address, size) : nullptr;
  if (at) unset_finding(origin_at(at), spot, what);
}

}  // namespace

// --- what the scheduler tells

TOKITAI_SERVING void watch_block(Block&) {
  for (unsigned i = 0; i < watch.area_count; i++)
    if (watch.areas[i].kind == Area::Kind::shared)
      mark_set(watch.areas[i].begin, watch.areas[i].bytes);
}
TOKITAI_SERVING void watch_block_leaves(Block&) {}
TOKITAI_SERVING void watch_block_returns(Block& block) {
  watch_block(block);  // shared memory is another block's until now
}
TOKITAI_SERVING void watch_grid_arrives(u64) {}
TOKITAI_SERVING void watch_grid_leaves(u64) {}
TOKITAI_SERVING void watch_barrier() {}
TOKITAI_SERVING void watch_resumed() {  // other threads have left results of theirs
  memset(values.state.result, 0, sizeof values.state.result);
}
TOKITAI_SERVING void watch_warp(unsigned warp, u64 members) {
  for (u64 left = members; left; left &= left - 1) {
    const unsigned thread = warp * warp_size + unsigned(__builtin_ctzll(left));
    const Lane& lane = current_block->lanes[thread];
    const bool takes = lane.operation == Operation::shuffle && (members >> lane.source & 1);
    values.taken[thread] =
        takes ? values.given[warp * warp_size + lane.source] : Values::Word{0, 0};
  }
}
TOKITAI_SERVING void watch_given(const u64* word) {
  memcpy(&values.given[linear_thread()].unset, known_of(word, sizeof *word).unset, sizeof *word);
  const unsigned char* at = first_unset(word, sizeof *word);
  values.given[linear_thread()].origin = at ? origin_at(at) : 0;
}
TOKITAI_SERVING void watch_taken(const u64* word) {
  const Values::Word& taken = values.taken[linear_thread()];
  if (taken.unset) mark(word, sizeof *word, 1, taken.origin);
  memcpy(known_of(word, sizeof *word).unset, &taken.unset, sizeof *word);
}
TOKITAI_SERVING void watch_used(const void* value, size_t size) {
  use_value(value, size, TOKITAI_SPOT, "what is passed here");
}

// --- a repetition

inline void watch_repetition(const Case& request) {
  for (Chunk& chunk : values.chunks)
    if (chunk.number) munmap(chunk.known, 2 * Chunk::bytes);
  memset(values.chunks, 0, sizeof values.chunks);
  memset(values.latest, 0, sizeof values.latest);
  watch_areas(request);
}

// Outputs, once all launches are through.
inline void watch_outputs(const Case& request) {
  for (unsigned i = 0; i < watch.area_count; i++) {
    const Area& area = watch.areas[i];
    if (area.kind != Area::Kind::buffer) continue;
    const Kind kind = request.buffers[area.index].kind;
    if (kind != Kind::output && kind != Kind::inout) continue;
    const unsigned char *at = area.begin, *end = area.begin + area.bytes;
    while ((at = first_unset(at, size_t(end - at)))) {
      const uint32_t origin = origin_at(at);
      Finding* found = unset_finding(origin, values.origins[origin].at,
                                     "what is stored here and stays in an output");
      if (found) {
        found->kernel = values.origins[origin].kernel;
        name_area(*found, area, at - area.begin, 4);
      }
      at += 4 - reinterpret_cast<uintptr_t>(at) % 4;
    }
  }
}

}  // namespace tokitai

// --- what Clang calls

// Functions of the C library that write through pointers (the linker's --wrap; VALUES of
// cpu_watch.py).
#define TOKITAI_WRITES(RESULT, NAME, PARAMETERS, ARGUMENTS, MARKS) \
  extern "C" RESULT __real_##NAME PARAMETERS;                      \
  extern "C" RESULT __wrap_##NAME PARAMETERS {                     \
    MARKS;                                                         \
    return __real_##NAME ARGUMENTS;                                \
  }
#define TOKITAI_MATH(T, F)                                                                     \
  TOKITAI_WRITES(void, sincos##F, (T x, T * s, T * c), (x, s, c),                              \
                 (tokitai::mark_set(s, sizeof *s), tokitai::mark_set(c, sizeof *c)))           \
  TOKITAI_WRITES(T, frexp##F, (T x, int* e), (x, e), tokitai::mark_set(e, sizeof *e))          \
  TOKITAI_WRITES(T, modf##F, (T x, T * whole), (x, whole),                                     \
                 tokitai::mark_set(whole, sizeof *whole))                                      \
  TOKITAI_WRITES(T, remquo##F, (T x, T y, int* q), (x, y, q), tokitai::mark_set(q, sizeof *q)) \
  TOKITAI_WRITES(T, lgamma##F##_r, (T x, int* sign), (x, sign),                                \
                 tokitai::mark_set(sign, sizeof *sign))
TOKITAI_MATH(double, )
TOKITAI_MATH(float, f)

#define TOKITAI_KNOWN(SIZE)                                           \
  tokitai::Pair __msan_metadata_ptr_for_load_##SIZE(void* address) {  \
    return tokitai::known_of(address, SIZE);                          \
  }                                                                   \
  tokitai::Pair __msan_metadata_ptr_for_store_##SIZE(void* address) { \
    return tokitai::known_of(address, SIZE);                          \
  }

extern "C" {
TOKITAI_KNOWN(1)
TOKITAI_KNOWN(2)
TOKITAI_KNOWN(4)
TOKITAI_KNOWN(8)
tokitai::Pair __msan_metadata_ptr_for_load_n(void* address, uint64_t size) {
  return tokitai::known_of(address, size);
}
tokitai::Pair __msan_metadata_ptr_for_store_n(void* address, uint64_t size) {
  return tokitai::known_of(address, size);
}
void* __msan_get_context_state() { return &tokitai::values.state; }
void __msan_warning(uint32_t origin) {
  if (!tokitai::in_kernel()) return;
  using namespace tokitai;
  unset_finding(origin, TOKITAI_SPOT, "a branch, an address or a divisor");
}
uint32_t __msan_chain_origin(uint32_t origin) {
  using namespace tokitai;
  return in_kernel() ? stored_at(origin, TOKITAI_SPOT) : origin;
}
void __msan_poison_alloca(void* address, uint64_t size, const char* variable) {
  using namespace tokitai;
  const uint32_t pc = offset_of(static_cast<char*>(__builtin_return_address(0)) - 1);
  auto& known = values.variables[pc % (sizeof values.variables / sizeof *values.variables)];
  if (known.pc != pc) {
    known.origin = origin_of(uint64_t(1) << 63 | pc, [=](uint32_t own) {
      return Origin{own, 0, variable, "", Spot{blockIdx, threadIdx, {pc}}};
    });
    known.pc = pc;
  }
  // Most are of one or two words.
  const Pair shadow = known_of(address);
  auto* origins = static_cast<uint32_t*>(shadow.origin);
  if (size == 8 && !(reinterpret_cast<uintptr_t>(address) % 8)) {
    memset(shadow.unset, 0xff, 8);
    origins[0] = origins[1] = known.origin;
  } else if (size == 4 && !(reinterpret_cast<uintptr_t>(address) % 4)) {
    memset(shadow.unset, 0xff, 4);
    origins[0] = known.origin;
  } else {
    mark(address, size, 0xff, known.origin);
  }
}
void __msan_unpoison_alloca(void* address, uint64_t size) { tokitai::mark_set(address, size); }
void __msan_instrument_asm_store(void* address, uint64_t size) { tokitai::mark_set(address, size); }
void __msan_set_origin(const void* address, uint64_t size, uint32_t origin) {
  (void)address, (void)size, (void)origin;
}
void* __msan_memset(void* to, int value, size_t size) {
  tokitai::mark_set(to, size);
  return memset(to, value, size);
}
void* __msan_memmove(void* to, const void* from, size_t size) {
  using namespace tokitai;
  if (!in_kernel() || !first_unset(from, size)) {
    mark_set(to, size);
    return memmove(to, from, size);
  }
  const Spot spot = TOKITAI_SPOT;
  auto* target = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  const auto copy = [=](size_t i) {
    const unsigned char unset = *static_cast<unsigned char*>(known_of(source + i).unset);
    if (unset) mark(target + i, 1, unset, stored_at(origin_at(source + i), spot));
    *static_cast<unsigned char*>(known_of(target + i).unset) = unset;
  };
  for (size_t i = 0; i < size; i++) copy(target < source ? i : size - 1 - i);
  return memmove(to, from, size);
}
void* __msan_memcpy(void* to, const void* from, size_t size) {
  return __msan_memmove(to, from, size);
}
}
