// What is found while translated kernels run, each kind and pair of instructions once, for the log that the
// tool reads (tokitai_cli/devices/watch_log.py): in the form of tokitai_watch.hpp, places as file and line.
#pragma once

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "launch.hpp"
#include "tokitai_host/text.hpp"

namespace tokitai::gfx {

struct Kept {
  Found found;
  const Launch* launch;  // of the running repetition
  const DeviceKernel* kernel;
  const char* name;
  u32 block[3], thread[3], other_block[3], other_thread[3];
  u64 count;
  int buffer;
  long long offset;
  u64 bytes;
};

struct Findings {
  static constexpr unsigned limit = 64;
  int log = -1;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  Kept kept[limit];
  unsigned count = 0;
};
inline Findings findings;

inline const char* kind_of(Fault fault) {
  switch (fault) {
    case Fault::out_of_bounds: return "out-of-bounds";
    case Fault::uninitialised: return "uninitialised-read";
    case Fault::misaligned: return "misaligned";
    default: return "race";
  }
}

inline void thread_of(const Launch& launch, u32 wave, u32 lane, u32* thread) {
  const u32 t = 32 * wave + lane, x = launch.block[0], y = launch.block[1];
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
    kept.bytes = area.bytes;
  }
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
  } else if (findings.count < Findings::limit) {
    Kept& made = findings.kept[findings.count++];
    made = {};
    made.found = found;
    made.kernel = launch.kernel;
    made.name = launch.name;
    made.count = 1;
    made.buffer = -1;
    for (int d = 0; d < 3; d++) made.block[d] = w.group->block[d];
    thread_of(launch, w.index, found.lane, made.thread);
    thread_of(launch, found.other_wave, 0, made.other_thread);
    if (strcmp(found.space, "global") == 0) name_buffer(made, launch, found.address);
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
      break;
    case Fault::uninitialised:
      append(text, "read of %u bytes of %s memory that nothing has written", found.bytes, found.space);
      break;
    case Fault::misaligned:
      append(text, "misaligned atomic operation on %u bytes", found.bytes);
      break;
    default:
      append(text, "%s and %s by another wave of the block, with no barrier between them: %s", does,
             found.other_writes ? "write" : "read", other ? other->text : "an instruction");
  }
  append(text, "; %s (at 0x%x)", instruction, found.at);
}

// Writes what was found and forgets it; true where something was, with the first one's words.
inline bool flush_findings(Word number, char* words, size_t size) {
  static char line[4096];
  const unsigned count = findings.count;
  for (unsigned i = 0; i < count; i++) {
    const Kept& kept = findings.kept[i];
    const Found& found = kept.found;
    const bool race = found.fault == Fault::race || found.fault == Fault::mixed_race;
    Text text = {line, sizeof line, 0};
    append(text, "finding\tkind=%s\tmessage=", kind_of(found.fault));
    append_words(text, kept);
    append(text, "\tkernel=%s\tcount=%llu\tlower=%d", kept.name, (unsigned long long)kept.count,
           found.fault == Fault::mixed_race);
    append_place(text, *kept.kernel, found.at, "");
    if (kept.buffer >= 0)
      append(text, "\tarray=buffer %d\toffset=%lld\tbytes=%llu\tsize=%u", kept.buffer, kept.offset,
             (unsigned long long)kept.bytes, found.bytes);
    else if (strcmp(found.space, "LDS") == 0)
      append(text, "\tarray=shared LDS\toffset=%llu\tbytes=%u\tsize=%u", (unsigned long long)found.address,
             kept.kernel->lds_bytes, found.bytes);
    append(text, "\tthread=block (%u,%u,%u), thread (%u,%u,%u)", kept.block[0], kept.block[1], kept.block[2],
           kept.thread[0], kept.thread[1], kept.thread[2]);
    if (race) {
      append_place(text, *kept.kernel, found.other_at, "other_");
      append(text, "\tother_thread=block (%u,%u,%u), wave %u", kept.block[0], kept.block[1], kept.block[2],
             found.other_wave);
    }
    append(text, "\n");
    if (findings.log >= 0 && write(findings.log, line, text.used) < 0) findings.log = -1;
    if (i == 0 && words) {
      Text told = {words, size, 0};
      append(told, "kernel %s, block (%u,%u,%u), thread (%u,%u,%u): ", kept.name, kept.block[0], kept.block[1],
             kept.block[2], kept.thread[0], kept.thread[1], kept.thread[2]);
      append_words(told, kept);
      const Place* place = place_of(*kept.kernel, found.at);
      if (place && *place->file) append(told, ", %s:%u", place->file, place->line);
      if (count > 1) append(told, "; %u more findings", count - 1);
    }
  }
  findings.count = 0;
  Text text = {line, sizeof line, 0};
  append(text, "case\t%llu\n", (unsigned long long)number);
  if (findings.log >= 0 && write(findings.log, line, text.used) < 0) findings.log = -1;
  return count != 0;
}

inline bool open_log(const char* path) {
  findings.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  return findings.log >= 0;
}

}  // namespace tokitai::gfx
