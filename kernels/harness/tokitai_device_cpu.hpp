// The cpu device: kernels run on the regions of the memory file themselves, without copies.
//
// Every buffer is mapped on its own, amid addresses that are never accessible, so that an access
// far outside of a buffer faults rather than lands in another one.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "tokitai_faults.hpp"
#include "tokitai_host/launch.hpp"
#include "tokitai_libm.hpp"
#include "tokitai_starter_cpu.hpp"

namespace tokitai {

// Where a misaligned access stands, as -fsanitize=alignment tells it (compiler-rt, ubsan_handlers.h).
struct MisalignedAccess {
  const char* file;
  unsigned line, column;
  const struct {
    unsigned short kind, info;
    char name[1];
  }* type;
  unsigned char log_alignment, kind;
};

}  // namespace tokitai

#if defined(TOKITAI_WATCH_ACCESSES) || defined(TOKITAI_WATCH_ADDRESS)
#define TOKITAI_WATCHED
#endif
#if defined(TOKITAI_WATCH_ACCESSES)
#include "tokitai_accesses.hpp"
#elif defined(TOKITAI_WATCH_ADDRESS)
#include "tokitai_address.hpp"
#endif

namespace tokitai {

inline void describe_fault_place(char* text, size_t size) {
  if (current_block == no_block)
    snprintf(text, size, "; not in a kernel");
  else
    snprintf(text, size, " in kernel %s, block (%u,%u,%u), thread (%u,%u,%u)",
             current_block->work->kernel, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
             threadIdx.y, threadIdx.z);
}

inline bool explain_address(const unsigned char* address, char* text, size_t size) {
  if (current_block == no_block) return false;
  for (unsigned i = 0; i < current_block->threads; i++) {
    const auto* stack = reinterpret_cast<const unsigned char*>(current_block->fibers[i].stack);
    if (!stack || address >= stack || address < stack - guard_bytes) continue;
    snprintf(text, size, "stack overflow of a GPU thread's stack (%zu KiB)", stack_bytes >> 10);
    return true;
  }
  return false;
}

inline void note_fault(const char* what, const void* address, const void* context) {
#ifdef TOKITAI_WATCHED
  watch_fault(what, address, context);
#else
  (void)what, (void)address, (void)context;
#endif
}

// A GPU faults there, so the child dies as it does of a null pointer.
[[noreturn]] inline void die_misaligned(const char* access, const void* address, size_t alignment,
                                        const char* place) {
  take_fault();
  char what[512];
  snprintf(what, sizeof what, "misaligned %s at %p, which is %zu above a multiple of %zu%s", access,
           address, size_t(reinterpret_cast<uintptr_t>(address) % alignment), alignment, place);
  die(SIGBUS, what);
  abort();
}

void die_of_misaligned_atomic(const void* address, size_t bytes) {
  char access[64];
  snprintf(access, sizeof access, "atomic operation on %zu bytes", bytes);
  die_misaligned(access, address, bytes, "");
}

class Device {
 public:
  static constexpr const char* name = "cpu";

  bool take_option(const char* option) {
    constexpr unsigned most_threads = 4096;
    unsigned threads;
#ifdef TOKITAI_WATCHED
    if (strncmp(option, "--watch=", 8) == 0) return watch_open(option + 8);
#endif
    if (sscanf(option, "--threads=%u", &threads) != 1 || threads > most_threads) return false;
    threads_ = threads;
    return true;
  }

  // Starts the OS threads; says what there is in the words of the hello frame.
  bool start(int memory, char* hello, size_t size) {
    memory_ = memory;
    page_ = size_t(sysconf(_SC_PAGESIZE));
    pool.threads = threads_ ? threads_ : usable_cores();
    pool.setup = prepare_thread_for_faults;
    find_shared_arrays(shared_layout);
#ifdef TOKITAI_WATCH_ADDRESS
    __asan_set_error_report_callback(on_address_report);
#endif
    snprintf(hello, size,
             "status=ok\ndevice=cpu\nwarp_size=%d\nfact.threads=%u|%s\nfact.compiler=%s|__VERSION__\n"
             "fact.context_switch=%s|compiled in\nfact.stack_kib=%zu|compiled in\n",
             warpSize, pool.threads, threads_ ? "--threads" : "sched_getaffinity", __VERSION__,
             context_switch_name, stack_bytes >> 10);
    return true;
  }

  bool open(const Program& program, Case& request) {
    struct stat status;
    if (fstat(memory_, &status) != 0 || Word(status.st_size) < request.file_bytes)
      end_with(exit_garbage, "the memory file is shorter than the request says");
    if (!read_fills(request)) return false;
    if (shared_layout.missing) return request.fail(Status::runtime_error, "%s", shared_layout.missing);
    for (Buffer& buffer : request.buffers) {
      if (buffer.kind == Kind::symbol && !check_symbol(program, request, buffer)) return false;
      if (!buffer.has_content()) continue;
      const bool is_input = buffer.is_read_only();
      buffer.kept = map(request, buffer, 0, buffer.content,
                        is_input ? PROT_READ | PROT_WRITE : PROT_READ,
                        is_input ? MAP_PRIVATE : MAP_SHARED);
      if (!buffer.kept) return false;
      if (is_input) buffer.pointer = buffer.kept;
    }
    return true;
  }

  // Maps the regions of a repetition and brings every buffer into its first state.
  bool prepare(const Program& program, Case& request, size_t repetition) {
    const FillPattern fill = fill_of(repetition);
    for (Buffer& buffer : request.buffers) {
      if (buffer.kind == Kind::symbol)
        memcpy(const_cast<void*>(program.symbols[buffer.symbol].device), buffer.kept, buffer.bytes);
      if (!buffer.is_result()) continue;
      const Word region = buffer.region + repetition * buffer.stride;
      if (!map_region(request, buffer, region)) return false;
      switch (buffer.fill) {
        case Fill::pattern: write_fill(buffer.pointer, buffer.bytes, fill, buffer.start); break;
        case Fill::zero: memset(buffer.pointer, 0, buffer.bytes); break;
        case Fill::content: memcpy(buffer.pointer, buffer.kept, buffer.bytes); break;
        case Fill::zero_once:
          if (!request.begun) memset(buffer.pointer, 0, buffer.bytes);
          break;
        case Fill::nothing:
        case Fill::kept: break;
      }
    }
    for (Buffer& buffer : request.buffers) {
      if (buffer.kind != Kind::list) continue;
      point(request, buffer, reinterpret_cast<Word*>(buffer.pointer));
      if (pwrite(memory_, buffer.pointer, buffer.bytes, off_t(buffer.content)) != ssize_t(buffer.bytes))
        return request.fail(Status::runtime_error, "a list cannot be written: %s", strerror(errno));
    }
    request.begun = true;
#ifdef TOKITAI_WATCH_ACCESSES
    watch_repetition(request);
#elif defined(TOKITAI_WATCH_ADDRESS)
    watch_areas(request);
#endif
    for (const Launch& launch : request.launches)
      if (!launch_is_valid(program, request, launch)) return false;
    const Word most = most_blocks(request);
    pool_grow((most < pool.threads ? unsigned(most) : pool.threads) - 1);
    return true;
  }

  bool run(const Program& program, Case& request, size_t repetition, Word& nanoseconds) {
    const Word begin = now();
    Work work = {};
    work.reach = near_bytes;
    work.watched = no_index;
    const bool went = launch_all(program, request, repetition, work);
#ifdef TOKITAI_WATCHED
    if (!went) watch_failure(work);
    if (!went) return request.fail(status_of(work.why), "%s", work.failure);
    nanoseconds = now() - begin;
    return true;
#endif
    if (!went) {
      if (work.why == Failure::shared_damage) find_writer(program, request, repetition, work);
      return request.fail(status_of(work.why), "%s", work.failure);
    }
    nanoseconds = now() - begin;
    if (!*request.message) name_writer(program, request, repetition);
    return true;
  }

  // The results already lie where the tool looks for them.
  bool collect(Case&, size_t) { return true; }

  // Counts the bytes of an input, guards included, that are not as in the file any more.
  bool compare_input(Case& request, Buffer& buffer) {
    const unsigned char* now = buffer.kept;
    const unsigned char* then = map(request, buffer, 1, buffer.content, PROT_READ, MAP_SHARED);
    if (!then) return false;
    const size_t bytes = buffer.front + buffer.bytes + buffer.back;
    now -= buffer.front;
    then -= buffer.front;
    if (memcmp(now, then, bytes) == 0) return true;
    for (size_t i = 0; i < bytes; i++) {
      if (now[i] == then[i]) continue;
      if (buffer.bytes_changed++ == 0) buffer.first_changed = int64_t(i) - int64_t(buffer.front);
    }
    return true;
  }

  void close(Case& request) {
#ifdef TOKITAI_WATCHED
    watch_flush(request.number, true);
#endif
    for (Buffer& buffer : request.buffers)
      for (unsigned slot = 0; slot < 3; slot++) unmap(buffer, slot);
  }

 private:
  int memory_ = -1;
  size_t page_ = 4096;
  unsigned threads_ = 0;
  Array<unsigned char> fills_;  // of all repetitions, one after another

#ifdef TOKITAI_WATCHED
  static constexpr size_t margin = size_t(1) << 32;
#else
  static constexpr size_t margin = size_t(1) << 20;
#endif

  static Word now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return Word(time.tv_sec) * 1000000000u + Word(time.tv_nsec);
  }

  FillPattern fill_of(size_t repetition) const {
    return {fills_.items + repetition * fill_bytes, fill_bytes};
  }

  bool read_fills(Case& request) {
    fills_.allocate(request.repetitions.count * fill_bytes);
    unsigned char* to = fills_.items;
    for (const Repetition& repetition : request.repetitions) {
      if (pread(memory_, to, fill_bytes, off_t(repetition.place)) != ssize_t(fill_bytes))
        return request.fail(Status::runtime_error, "a fill cannot be read: %s", strerror(errno));
      to += fill_bytes;
    }
    return true;
  }

  static bool check_symbol(const Program& program, Case& request, const Buffer& buffer) {
    const SymbolEntry& symbol = program.symbols[buffer.symbol];
    if (symbol.bytes == buffer.bytes) return true;
    return request.fail(Status::argument_misfit,
                        "symbol %s has %llu bytes in the kernel source, the spec gives %llu",
                        symbol.name, (unsigned long long)symbol.bytes,
                        (unsigned long long)buffer.bytes);
  }

  // Maps guards and payload at `offset` of the memory file; returns the payload's address or null.
  unsigned char* map(Case& request, Buffer& buffer, unsigned slot, Word offset, int protection,
                     int sharing) {
    const Word begin = (offset - buffer.front) / page_ * page_;
    const size_t bytes = offset + buffer.bytes + buffer.back - begin;
    const size_t mapped = (bytes + page_ - 1) / page_ * page_;
    const size_t reserved = mapped + 2 * margin;
    void* range = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return out_of_memory(request, reserved);
    buffer.reserved[slot] = static_cast<unsigned char*>(range);
    buffer.reserved_bytes[slot] = reserved;
    unsigned char* at = static_cast<unsigned char*>(range) + margin;
    if (bytes && mmap(at, bytes, protection, sharing | MAP_FIXED, memory_, off_t(begin)) == MAP_FAILED)
      return out_of_memory(request, bytes);
#ifdef MADV_POPULATE_READ
    // Page faults outside of the timing. Populating for writing would copy every private page.
    if (bytes) madvise(at, bytes, MADV_POPULATE_READ);
#endif
    return at + (offset - begin);
  }

  static unsigned char* out_of_memory(Case& request, size_t bytes) {
    request.fail(Status::out_of_memory, "mmap of %zu bytes: %s", bytes, strerror(errno));
    return nullptr;
  }

  static void unmap(Buffer& buffer, unsigned slot) {
    if (buffer.reserved[slot]) munmap(buffer.reserved[slot], buffer.reserved_bytes[slot]);
    buffer.reserved[slot] = nullptr;
  }

  // Only the region of the present repetition is mapped, so that no other one can be written to.
  // Its guards are filled when it is first mapped; where all repetitions share it, only once.
  bool map_region(Case& request, Buffer& buffer, Word region) {
    if (buffer.reserved[2] && (buffer.stride == 0 || buffer.mapped_region == region)) return true;
    unmap(buffer, 2);
    buffer.pointer = map(request, buffer, 2, region, PROT_READ | PROT_WRITE, MAP_SHARED);
    if (!buffer.pointer) return false;
    buffer.mapped_region = region;
    memset(buffer.pointer - buffer.front, guard_fill, buffer.front);
    memset(buffer.pointer + buffer.bytes, guard_fill, buffer.back);
    return true;
  }

  static Word most_blocks(const Case& request) {
    Word most = 1;
    for (size_t i = 0; i < request.launches.count; i++) {
      const Word* grid = request.launches[i].grid;
      const Word blocks = grid[0] * grid[1] * grid[2];
      if (blocks > most) most = blocks;
    }
    return most;
  }

  // Limits of AMD GPUs (HIP programming guide): 1024 threads a block, a grid of less than 2^32
  // threads in each dimension, and shared memory as --arch has it (64 KiB).
  static bool launch_is_valid(const Program& program, Case& request, const Launch& launch) {
    const KernelEntry& kernel = program.kernels[launch.kernel];
    bool valid = true;
    for (unsigned d = 0; d < 3; d++)
      valid = valid && launch.grid[d] > 0 && launch.grid[d] < (Word(1) << 32) &&
              launch.block[d] > 0 && launch.block[d] <= block_limit &&
              launch.grid[d] * launch.block[d] < (Word(1) << 32);
    valid = valid && launch.block[0] * launch.block[1] * launch.block[2] <= block_limit;
    Word blocks = 0;
    valid = valid && !__builtin_mul_overflow(launch.grid[0] * launch.grid[1], launch.grid[2], &blocks);
    if (!valid)
      return request.fail(
          Status::runtime_error,
          "invalid configuration of kernel %s: grid (%llu,%llu,%llu), block (%llu,%llu,%llu); a grid "
          "and a block have at least one element in each dimension, a block at most %u threads",
          kernel.name, (unsigned long long)launch.grid[0], (unsigned long long)launch.grid[1],
          (unsigned long long)launch.grid[2], (unsigned long long)launch.block[0],
          (unsigned long long)launch.block[1], (unsigned long long)launch.block[2], block_limit);
    const Word threads = launch.block[0] * launch.block[1] * launch.block[2];
    if (kernel.thread_bound && threads > kernel.thread_bound)
      return request.fail(Status::runtime_error,
                          "kernel %s is launched with %llu threads a block, its __launch_bounds__ allow %u: "
                          "a GPU refuses the launch",
                          kernel.name, (unsigned long long)threads, kernel.thread_bound);
    const size_t own = static_shared_bytes(kernel.device->address());
    if (launch.shared_bytes + own > shared_limit)
      return request.fail(Status::runtime_error,
                          "kernel %s needs %zu bytes of static and %llu bytes of dynamic shared memory; "
                          "the limit is %zu",
                          kernel.name, own, (unsigned long long)launch.shared_bytes, shared_limit);
    return true;
  }

  static Status status_of(Failure why) {
    switch (why) {
      case Failure::divergence: return Status::divergence;
      case Failure::out_of_memory: return Status::out_of_memory;
      default: return Status::runtime_error;
    }
  }

  // Runs a repetition again to find the block, then the thread, that wrote into a guard of shared
  // memory. What does not happen again stays not known.
  void find_writer(const Program& program, Case& request, size_t repetition, Work& found) {
    while (found.seen != Seen::after_thread) {
      if (!prepare(program, request, repetition)) return;
      Work again = {};
      again.reach = found.damaged == no_index ? SIZE_MAX : 0;
      again.watched = found.damaged;
      if (launch_all(program, request, repetition, again)) return;
      if (again.why != Failure::shared_damage || again.seen >= found.seen) return;
      found = again;
    }
  }

  // Where a guard of a result is damaged: runs the repetition again, thread by thread, until its first
  // damaged byte changes, and leaves "BUFFER REPETITION writer" as the message of a case that is ok. The
  // regions are put back, for the tool to judge what the first run left.
  void name_writer(const Program& program, Case& request, size_t repetition) {
    const unsigned char* damaged = nullptr;
    size_t which = 0;
    for (size_t b = 0; b < request.buffers.count && !damaged; b++)
      if (request.buffers[b].is_result()) damaged = damaged_guard(request.buffers[b]), which = b;
    unsigned char* kept = damaged ? copy_results(request) : nullptr;
    if (!kept) return;
    Work again = {};
    again.watched = no_index;
    again.guard_byte = damaged;
    again.guard_value = guard_fill;
    if (prepare(program, request, repetition)) {
      *const_cast<unsigned char*>(damaged) = guard_fill;
      if (!launch_all(program, request, repetition, again) &&
          again.why == Failure::guard_damage)
        snprintf(request.message, sizeof request.message, "%zu %zu %.4000s", which, repetition,
                 again.failure);
    }
    put_back(request, kept);
    free(kept);
  }

  // The first byte of a buffer's guards that is not as it was filled, or null.
  static const unsigned char* damaged_guard(const Buffer& buffer) {
    const unsigned char* begin = buffer.pointer - buffer.front;
    const unsigned char* end = buffer.pointer + buffer.bytes;
    for (const unsigned char* at = begin; at < buffer.pointer; at++)
      if (*at != guard_fill) return at;
    for (const unsigned char* at = end; at < end + buffer.back; at++)
      if (*at != guard_fill) return at;
    return nullptr;
  }

  template <class Visit>
  static void each_result(Case& request, Visit visit) {
    for (Buffer& buffer : request.buffers)
      if (buffer.is_result())
        visit(buffer.pointer - buffer.front, buffer.front + buffer.bytes + buffer.back);
  }

  // A copy of all results with their guards, or null where there is no memory for it.
  static unsigned char* copy_results(Case& request) {
    size_t total = 0;
    each_result(request, [&](unsigned char*, size_t bytes) { total += bytes; });
    auto* kept = static_cast<unsigned char*>(malloc(total));
    unsigned char* to = kept;
    if (kept)
      each_result(request, [&](unsigned char* from, size_t bytes) {
        memcpy(to, from, bytes);
        to += bytes;
      });
    return kept;
  }

  static void put_back(Case& request, const unsigned char* kept) {
    each_result(request, [&](unsigned char* to, size_t bytes) {
      memcpy(to, kept, bytes);
      kept += bytes;
    });
  }

  // Runs the launches one after another, as `work` says; false where one of them failed.
  bool launch_all(const Program& program, Case& request, size_t repetition, Work& work) const {
    work.fill = fill_of(repetition);
    work.seed = request.repetitions[repetition].seed;
    bool went = true;
#ifdef TOKITAI_WATCH_ADDRESS
    poison_around(request, true);
#endif
    for (size_t i = 0; went && i < request.launches.count; i++)
      went = start_launch(program, request, request.launches[i], work);
#ifdef TOKITAI_WATCH_ADDRESS
    poison_around(request, false);
#endif
    return went;
  }

  static bool start_launch(const Program& program, Case& request, const Launch& launch,
                           Work& work) {
    const KernelEntry& kernel = program.kernels[launch.kernel];
    Word words[argument_limit];
    for (unsigned i = 0; i < launch.argument_count; i++) {
      const Word value = launch.arguments[2 * i + 1];
      words[i] = kernel.parameters[i].kind == Argument::buffer
                     ? reinterpret_cast<Word>(request.buffers[value].pointer)
                     : value;
    }
    work.kernel = kernel.name;
    work.all_threads = kernel.device->all_threads;
    work.one_thread = kernel.device->one_thread;
    work.arguments = words;
    work.grid = {unsigned(launch.grid[0]), unsigned(launch.grid[1]), unsigned(launch.grid[2])};
    work.block = {unsigned(launch.block[0]), unsigned(launch.block[1]), unsigned(launch.block[2])};
    work.dynamic_bytes = size_t(launch.shared_bytes);
#ifdef TOKITAI_WATCH_ACCESSES
    watch_launch(work.dynamic_bytes);
#elif defined(TOKITAI_WATCH_ADDRESS)
    watch_shared(work.dynamic_bytes);
#endif
#ifdef TOKITAI_WATCHED
    watch.running = true;
#endif
    tokitai::launch(work);
#ifdef TOKITAI_WATCHED
    watch.running = false;
#endif
    return !work.failed;
  }
};

}  // namespace tokitai

// What a compiler calls where an address is no multiple of its type's alignment. A sanitizer's runtime
// that a spec's flags link in has one of its own.
extern "C" __attribute__((weak, used, noreturn)) void __ubsan_handle_type_mismatch_v1_abort(
    const tokitai::MisalignedAccess* access, const void* address) {
  constexpr const char* names[] = {"load of", "store to", "reference to", "access to a member of"};
  const unsigned known = sizeof names / sizeof *names;
  char text[256], place[200];
  snprintf(text, sizeof text, "%s %s", access->kind < known ? names[access->kind] : "use of",
           access->type->name);
  snprintf(place, sizeof place, ", in %s:%u", access->file, access->line);
  tokitai::die_misaligned(text, address, size_t(1) << access->log_alignment, place);
}
