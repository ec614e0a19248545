// A launch of a translated kernel: its memory, its blocks spread over OS threads, the turns of their waves.
#pragma once

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <initializer_list>

#include "program.hpp"
#include "tokitai_host/fill.hpp"
#include "tokitai_host/schedule.hpp"

namespace tokitai::gfx {

constexpr unsigned area_limit = 520, wave_limit = 32;

struct Launch {
  const DeviceKernel* kernel;
  const char* name;
  u32 grid[3], block[3];
  u32 lds_bytes;
  FillPattern fill;
  unsigned long long seed;
  Area areas[area_limit];  // by address
  unsigned area_count;
  const u8* arguments;
  const u8* packet;
  u32 first_number;  // of its blocks
  u64 image;  // where address 0 of the code object lies
  // Of all OS threads.
  unsigned long long total, next, chunk;
  int stopped;
  bool not_modelled;  // why it was stopped
  char why[512];
};

// The memory of the code object beside its code. Writable variables of it outlive launches.
struct Image {
  u8* memory = nullptr;

  bool load() {
    memory = static_cast<u8*>(calloc(1, image_data.bytes + 4096));
    if (!memory) return false;
    for (unsigned i = 0; i < image_data.segment_count; i++) {
      const Segment& segment = image_data.segments[i];
      memcpy(memory + segment.address, segment.data, segment.data_bytes);
    }
    for (unsigned i = 0; i < image_data.relocation_count; i++) {
      const u64 value = reinterpret_cast<u64>(memory) + image_data.relocations[i].addend;
      memcpy(memory + image_data.relocations[i].address, &value, sizeof value);
    }
    return true;
  }
};

inline void stop(Launch& launch, const char* why, u32 at, bool not_modelled = false) {
  if (__atomic_exchange_n(&launch.stopped, 1, __ATOMIC_ACQ_REL)) return;
  launch.not_modelled = not_modelled;
  snprintf(launch.why, sizeof launch.why, "kernel %s: %s at address 0x%x of the code object", launch.name, why,
           at);
}

inline const Place* place_of(const DeviceKernel& kernel, u32 at) {
  unsigned first = 0, end = kernel.place_count;
  while (first < end) {
    const unsigned middle = (first + end) / 2;
    if (kernel.places[middle].at < at)
      first = middle + 1;
    else
      end = middle;
  }
  return first < kernel.place_count && kernel.places[first].at == at ? &kernel.places[first] : nullptr;
}

// --- one block

// Memory of one OS thread's blocks, for as long as a launch.
struct Room {
  Group group = {};
  Wave* waves = nullptr;
  bool enough = false;

  Room(Launch& launch, unsigned wave_count) {
    const DeviceKernel& kernel = *launch.kernel;
    const u64 scratch = u64(kernel.scratch_bytes) * wave_count * wave_size;
    waves = static_cast<Wave*>(aligned_alloc(64, sizeof(Wave) * wave_count));
    group.lds = static_cast<u8*>(aligned_alloc(64, (u64(launch.lds_bytes) + 127) / 64 * 64));
    group.cells = static_cast<LdsCell*>(malloc((launch.lds_bytes / 4 + 2) * sizeof(LdsCell)));
    group.scratch = static_cast<u8*>(malloc(scratch + 16));
    group.scratch_written = static_cast<u8*>(malloc(scratch + 16));
    enough = waves && group.lds && group.cells && group.scratch && group.scratch_written;
    group.lds_bytes = launch.lds_bytes;
    group.scratch_bytes = kernel.scratch_bytes;
    group.waves = waves;
    group.wave_count = wave_count;
    group.launch = &launch;
    group.entry = kernel.entry;
    group.first_number = launch.first_number;
  }
  ~Room() {
    for (void* memory : {static_cast<void*>(waves), static_cast<void*>(group.lds),
                         static_cast<void*>(group.cells), static_cast<void*>(group.scratch),
                         static_cast<void*>(group.scratch_written)})
      free(memory);
  }
};

inline void begin_wave(Wave& w, Group& group, unsigned index, const Row* unset) {
  const Launch& launch = *group.launch;
  const DeviceKernel& kernel = *launch.kernel;
  // Registers hold what nobody has set, which differs from repetition to repetition.
  memcpy(w.v, unset, kernel.vector_registers * sizeof(Row));
  if (kernel.accumulation_registers)
    memcpy(w.v + accumulation, unset + accumulation, kernel.accumulation_registers * sizeof(Row));
  memcpy(w.s, unset, sizeof w.s);
  w.index = index;
  w.group = &group;
  for (const Area*& area : w.areas) area = launch.areas;
  w.pc = kernel.entry;
  w.state = State::ready;
  w.scc = 0;
  unset_all(w.unset, kernel.vector_registers, kernel.accumulation_registers);
  if (kernel.scratch_at >= 0) {  // as buffers.hpp knows it
    const u32 descriptor[4] = {0, 1u << 31, kernel.scratch_bytes * wave_size, 1u << 23};
    memcpy(w.s + kernel.scratch_at, descriptor, sizeof descriptor);
  }
  if (kernel.dispatch_at >= 0) w.set_pair(unsigned(kernel.dispatch_at), reinterpret_cast<u64>(launch.packet));
  if (kernel.arguments_at >= 0)
    w.set_pair(unsigned(kernel.arguments_at), reinterpret_cast<u64>(launch.arguments));
  if (kernel.scratch_size_at >= 0) w.s[kernel.scratch_size_at] = kernel.scratch_bytes;
  unsigned next = unsigned(kernel.user_registers);
  if (kernel.block_x) w.s[next++] = group.block[0];
  if (kernel.block_y) w.s[next++] = group.block[1];
  if (kernel.block_z) w.s[next++] = group.block[2];
  if (kernel.waves) w.s[next++] = group.wave_count;
  if (kernel.scratch_offset) w.s[next++] = 0;
  for (u32 i = 0; i < next; i++) set_scalar(w.unset, i);
  const u32 x = launch.block[0], y = launch.block[1], threads = x * y * launch.block[2];
  const u32 first = wave_size * index, lanes = threads - first < wave_size ? threads - first : wave_size;
  w.set_exec(lanes == wave_size ? all_lanes : lane_bit(lanes) - 1);
  for (u32 l = 0; l < wave_size; l++) {
    const u32 t = first + l;
    w.v[0].lane[l] = t % x | (t / x % y) << 10 | (t / x / y) << 20;
  }
  for (u32 half : {0u, u32(register_limit)}) set_half(w.unset, half, all_lanes);
}

// Runs the waves by turns: each until it waits at a barrier, has ended, or has looped for long.
inline void run_waves(Group& group, unsigned long long block) {
  Launch& launch = *group.launch;
  constexpr u32 turns = 1 << 20;
  unsigned long long random = mixed(launch.seed ^ mixed(block)) | 1;
  unsigned order[wave_limit];
  for (unsigned i = 0; i < group.wave_count; i++)
    order[i] = launch.seed == reverse_order ? group.wave_count - 1 - i : i;
  const bool shuffles = launch.seed != reverse_order && launch.seed != natural_order;
  for (;;) {
    for (unsigned i = group.wave_count; shuffles && i > 1; i--) {
      const unsigned j = unsigned(next_random(random) % i), kept = order[i - 1];
      order[i - 1] = order[j];
      order[j] = kept;
    }
    bool ready = false, waiting = false;
    for (unsigned i = 0; i < group.wave_count; i++) {
      Wave& w = group.waves[order[i]];
      if (w.state == State::ready) {
        w.turns = turns;
        launch.kernel->run(w);
        if (__atomic_load_n(&launch.stopped, __ATOMIC_RELAXED)) return;
      }
      ready = ready || w.state == State::ready;
      waiting = waiting || w.state == State::at_barrier;
    }
    if (ready) continue;
    if (!waiting) return;
    // Waves that have ended do not count at a barrier.
    group.interval++;
    for (unsigned i = 0; i < group.wave_count; i++)
      if (group.waves[i].state == State::at_barrier) group.waves[i].state = State::ready;
  }
}

inline void run_blocks(Launch& launch) {
  const u32 threads = launch.block[0] * launch.block[1] * launch.block[2];
  Room room(launch, (threads + wave_size - 1) / wave_size);
  auto* unset = static_cast<Row*>(aligned_alloc(64, sizeof(Row) * register_limit));
  if (!room.enough || !unset) {
    stop(launch, "no memory for a block", 0);
    free(unset);
    return;
  }
  write_fill(reinterpret_cast<u8*>(unset), sizeof(Row) * register_limit, launch.fill, 0);
  Group& group = room.group;
  const BlockOrder order = block_order(launch.seed, launch.total);
  while (!__atomic_load_n(&launch.stopped, __ATOMIC_RELAXED)) {
    const unsigned long long begin = __atomic_fetch_add(&launch.next, launch.chunk, __ATOMIC_RELAXED);
    if (begin >= launch.total) break;
    const unsigned long long end = begin + launch.chunk < launch.total ? begin + launch.chunk : launch.total;
    for (unsigned long long i = begin; i < end && !__atomic_load_n(&launch.stopped, __ATOMIC_RELAXED); i++) {
      const unsigned long long at = order(i);
      group.block[0] = u32(at % launch.grid[0]);
      group.block[1] = u32(at / launch.grid[0] % launch.grid[1]);
      group.block[2] = u32(at / launch.grid[0] / launch.grid[1]);
      group.interval = 1;
      group.fenced_interval = 0;
      group.fenced = false;
      group.number = launch.first_number + u32(at);
      write_fill(group.lds, group.lds_bytes, launch.fill, 0);
      memset(group.cells, 0, (group.lds_bytes / 4 + 2) * sizeof(LdsCell));
      if (group.scratch_bytes) {
        const u64 bytes = u64(group.scratch_bytes) * group.wave_count * wave_size;
        write_fill(group.scratch, bytes, launch.fill, 0);
        memset(group.scratch_written, 0, bytes);
      }
      for (unsigned w = 0; w < group.wave_count; w++) begin_wave(group.waves[w], group, w, unset);
      run_waves(group, at);
    }
  }
  free(unset);
}

inline void* help(void* launch) {
  run_blocks(*static_cast<Launch*>(launch));
  return nullptr;
}

// Runs all blocks; false where it stopped, with the reason in `why`.
inline bool run(Launch& launch, unsigned threads) {
  constexpr unsigned most = 256;
  launch.total = (unsigned long long)launch.grid[0] * launch.grid[1] * launch.grid[2];
  launch.next = 0;
  if (threads > launch.total) threads = unsigned(launch.total);
  if (threads > most) threads = most;
  launch.chunk = launch.total / (threads * 16ull) + 1;
  pthread_t helpers[most];
  unsigned started = 0;
  while (started + 1 < threads && pthread_create(&helpers[started], nullptr, help, &launch) == 0) started++;
  run_blocks(launch);
  for (unsigned i = 0; i < started; i++) pthread_join(helpers[i], nullptr);
  return !launch.stopped;
}

}  // namespace tokitai::gfx
