// What is found while translated kernels run, each kind and pair of instructions once, for the answer of a
// case (docs/internals/protocol.md).
#pragma once

#include "launch.hpp"
#include "tokitai_host/text.hpp"
#include "tokitai_wrapped_index.hpp"

namespace tokitai::gfx {

struct Kept {
  Found found;
  const DeviceKernel* kernel;
  const char* name;
  u32 block[3], thread[3], grid[3];
  u64 count, nonzero;  // how often seen, and how often with a value that is not zero
  int buffer;
  long long offset;
  WrappedIndex wrapped;
};

struct Findings {
  static constexpr unsigned limit = 64;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  Kept kept[limit];
  unsigned count = 0;
  u64 left_out = 0;  // of places beyond the limit, or without room in the answer
  bool error_left_out = false;
};
inline Findings findings;

inline const char* kind_of(Fault fault) {
  switch (fault) {
    case Fault::out_of_bounds: return "out-of-bounds";
    case Fault::uninitialised:
    case Fault::unset: return "uninitialised-read";
    case Fault::misaligned: return "misaligned";
    case Fault::mixed_race: return "mixed-race";
    case Fault::same_value: return "same-value-race";
    default: return "race";
  }
}

inline void thread_of(const Launch& launch, u32 wave, u32 lane, u32* thread) {
  const u32 t = wave_size * wave + lane, x = launch.block[0], y = launch.block[1];
  thread[0] = t % x;
  thread[1] = t / x % y;
  thread[2] = t / x / y;
}

// The area that an address lies nearest to, where it is one of a buffer.
inline void name_buffer(Kept& kept, const Launch& launch, u64 address) {
  u64 least = u64(1) << 32;
  for (unsigned i = 0; i < launch.area_count; i++) {
    const Area& area = launch.areas[i];
    const u64 begin = reinterpret_cast<u64>(area.begin), end = begin + area.bytes;
    const u64 distance = address < begin ? begin - address : address >= end ? address - end + 1 : 0;
    if (distance >= least || area.buffer < 0) continue;
    least = distance;
    kept.buffer = area.buffer;
    kept.offset = (long long)(address - begin);
  }
  if (least >> 16 == 0) return;
  for (unsigned i = 0; i < launch.area_count; i++) {
    const Area& area = launch.areas[i];
    const u64 begin = reinterpret_cast<u64>(area.begin);
    if (area.buffer < 0 || !wraps_nearer(address, begin, begin + area.bytes, kept.wrapped)) continue;
    kept.buffer = area.buffer;
    kept.offset = (long long)(address - begin);
  }
}

constexpr const char* kept_in_lds = "what is stored in LDS";

// A compiler may load from LDS ahead of the branch that decides whether the value counts, as such a load
// cannot fault: what nobody wrote there is a warning. So is what a thread without an element puts there, as in
// block-wide exchanges. Where the value does count, other fills in other repetitions give other results.
inline bool is_speculative(const Found& found) {
  const bool read = found.fault == Fault::uninitialised && strcmp(found.space, "LDS") == 0;
  return read || (found.fault == Fault::unset && found.space == kept_in_lds);
}

inline bool is_warning(const Found& found) {
  return found.fault == Fault::mixed_race || found.fault == Fault::same_value || is_speculative(found);
}

inline void leave_out(const Found& found, u64 count) {
  findings.left_out += count;
  findings.error_left_out |= !is_warning(found);
}

inline void keep(const Wave& w, const Found& found) {
  const Launch& launch = *w.group->launch;
  pthread_mutex_lock(&findings.mutex);
  Kept* known = nullptr;
  for (unsigned i = 0; i < findings.count && !known; i++) {
    const Found& one = findings.kept[i].found;
    const bool same = one.at == found.at && one.other_at == found.other_at;
    const bool swapped = one.at == found.other_at && one.other_at == found.at;
    if (one.fault == found.fault && (same || swapped) && findings.kept[i].kernel == launch.kernel)
      known = &findings.kept[i];
  }
  if (known) {
    known->count++;
    known->nonzero += !found.zero;
  } else if (findings.count < Findings::limit) {
    Kept& made = findings.kept[findings.count++];
    made = {};
    made.found = found;
    made.kernel = launch.kernel;
    made.name = launch.name;
    made.count = 1;
    made.nonzero = !found.zero;
    made.buffer = -1;
    for (int d = 0; d < 3; d++) made.block[d] = w.group->block[d], made.grid[d] = launch.grid[d];
    thread_of(launch, w.index, found.lane, made.thread);
    if (strcmp(found.space, "global") == 0) name_buffer(made, launch, found.address);
  } else {
    leave_out(found, 1);
  }
  pthread_mutex_unlock(&findings.mutex);
}

inline void append_place(Text& text, const DeviceKernel& kernel, u32 at, const char* prefix) {
  const Place* place = place_of(kernel, at);
  if (place && *place->file) append(text, "\t%sfile=%s\t%sline=%u", prefix, place->file, prefix, place->line);
}

inline void append_words(Text& text, const Kept& kept) {
  const Found& found = kept.found;
  const Place *place = place_of(*kept.kernel, found.at), *other = place_of(*kept.kernel, found.other_at);
  const char *instruction = place ? place->text : "an instruction", *does = found.writes ? "write" : "read";
  switch (found.fault) {
    case Fault::out_of_bounds:
      append(text, "out-of-bounds: %s of %u bytes of %s memory that the launch does not have", does,
             found.bytes, found.space);
      if (kept.wrapped.element) {
        char far[64];
        words_of(kept.wrapped, far, sizeof far);
        append(text, ", %s an array: %s", far, wrapped_around);
      }
      break;
    case Fault::uninitialised:
      append(text, "read of %u bytes of %s memory that nothing has written", found.bytes, found.space);
      break;
    case Fault::unset:
      append(text, "a register that nothing has written decides %s", found.space);
      break;
    case Fault::misaligned:
      append(text, "misaligned atomic operation on %u bytes", found.bytes);
      break;
    default:
      append(text, "%s and %s%s by another %s: %s", does, found.other_writes ? "write" : "read",
             found.fault == Fault::same_value ? " of the same value" : "",
             found.other_block ? "block, with no fence of the device's scope before both"
                               : "wave of the block, with no barrier between them",
             other ? other->text : "an instruction");
  }
  if (found.fault == Fault::same_value && !kept.nonzero)
    append(text, "; each time both wrote zero, which proves nothing of other inputs");
  append(text, "; %s (at 0x%x)", instruction, found.at);
}

inline void forget_findings() {
  findings.count = 0;
  findings.left_out = 0;
  findings.error_left_out = false;
}

// Tells what was found, a line each of fields parted by tabs, as far as whole lines have room, then how much
// was left out, and forgets it.
inline void tell_findings(char* told, size_t size) {
  static char line[1024];
  constexpr size_t room_for_last = 160;
  size_t used = 0;
  *told = 0;
  for (unsigned i = 0; i < findings.count; i++) {
    const Kept& kept = findings.kept[i];
    const Found& found = kept.found;
    Text text = {line, sizeof line, 0};
    append(text, "finding\tkind=%s\tmessage=", kind_of(found.fault));
    append_words(text, kept);
    append(text, "\tkernel=%s\tcount=%llu\tlower=%d", kept.name, (unsigned long long)kept.count,
           is_warning(found));
    append_place(text, *kept.kernel, found.at, "");
    if (kept.buffer >= 0)
      append(text, "\tbuffer=%d\toffset=%lld\tsize=%u", kept.buffer, kept.offset, found.bytes);
    else if (strcmp(found.space, "LDS") == 0)
      append(text, "\toffset=%llu\tsize=%u", (unsigned long long)found.address, found.bytes);
    append(text, "\tthread=block (%u,%u,%u), thread (%u,%u,%u)", kept.block[0], kept.block[1], kept.block[2],
           kept.thread[0], kept.thread[1], kept.thread[2]);
    if (found.fault == Fault::race || found.fault == Fault::mixed_race || found.fault == Fault::same_value) {
      append_place(text, *kept.kernel, found.other_at, "other_");
      u32 block[3] = {kept.block[0], kept.block[1], kept.block[2]};
      if (found.other_block) {
        const u32 number = found.other_block - 1, x = kept.grid[0], y = kept.grid[1];
        block[0] = number % x, block[1] = number / x % y, block[2] = number / x / y;
      }
      if (found.other_block == ~0u)
        append(text, "\tother_thread=several blocks");
      else
        append(text, "\tother_thread=block (%u,%u,%u), wave %u", block[0], block[1], block[2],
               found.other_wave);
    }
    append(text, "\n");
    if (used + text.used + 1 + room_for_last > size) {
      leave_out(found, kept.count);
      continue;
    }
    memcpy(told + used, line, text.used + 1);
    used += text.used;
  }
  if (findings.left_out)
    snprintf(told + used, size - used,
             "finding\tkind=left-out\tmessage=found at other places, which have no room here"
             "\tcount=%llu\tlower=%d\n",
             (unsigned long long)findings.left_out, !findings.error_left_out);
  forget_findings();
}

}  // namespace tokitai::gfx
