// The cpu device: kernels run on the host's threads, as fibers.
#pragma once

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

#if defined(TOKITAI_WATCH_SCHEDULE) || defined(TOKITAI_WATCH_ADDRESS)
#define TOKITAI_WATCHED
#endif
#include "tokitai_regions.hpp"
#if defined(TOKITAI_WATCH_ACCESSES)
#include "tokitai_tsan.hpp"
#elif defined(TOKITAI_WATCH_VALUES)
#include "tokitai_values.hpp"
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

// A thread that runs on and on has its turn taken away; what a signal interrupts goes on behind it.
inline void catch_ticks() {
#ifndef TOKITAI_WATCH_ACCESSES
  struct sigaction action = {};
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
#ifdef TOKITAI_WATCH_VALUES
    const auto kept = values.state;
    on_tick(context);
    values.state = kept;
#else
    on_tick(context);
#endif
  };
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(tick_signal, &action, nullptr);
#endif
}

void die_of_misaligned_atomic(const void* address, size_t bytes) {
  char access[64];
  snprintf(access, sizeof access, "atomic operation on %zu bytes", bytes);
  die_misaligned(access, address, bytes, "");
}

class Device : public Regions {
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
    attach(memory);
    pool.threads = threads_ ? threads_ : usable_cores();
    pool.setup = prepare_thread_for_faults;
    find_shared_arrays(shared_layout);
    catch_ticks();
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
    if (shared_layout.missing) return request.fail(Status::runtime_error, "%s", shared_layout.missing);
    return Regions::open(program, request);
  }

  bool prepare(const Program& program, Case& request, size_t repetition) {
    if (!Regions::prepare(program, request, repetition)) return false;
#ifdef TOKITAI_WATCH_SCHEDULE
    watch_repetition(request);
#elif defined(TOKITAI_WATCH_ADDRESS)
    watch_areas(request);
#endif
    for (const Launch& launch : request.launches) {
      const KernelEntry& kernel = program.kernels[launch.kernel];
      const size_t own = static_shared_bytes(kernel.device->address());
      if (!launch_is_valid(kernel, request, launch, own, shared_limit)) return false;
    }
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
#ifdef TOKITAI_WATCH_VALUES
    if (went) watch_outputs(request);
#endif
#ifdef TOKITAI_WATCHED
    if (!went && work.failed) watch_failure(work);
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

  void close(Case& request) {
#ifdef TOKITAI_WATCHED
#ifdef TOKITAI_WATCH_ACCESSES
    settle_findings();
#endif
    watch_flush(request.number, true);
#endif
    Regions::close(request);
  }

 private:
  unsigned threads_ = 0;

  static Word most_blocks(const Case& request) {
    Word most = 1;
    for (size_t i = 0; i < request.launches.count; i++) {
      const Word* grid = request.launches[i].grid;
      const Word blocks = grid[0] * grid[1] * grid[2];
      if (blocks > most) most = blocks;
    }
    return most;
  }

  static Status status_of(Failure why) {
    switch (why) {
      case Failure::divergence: return Status::divergence;
      case Failure::out_of_memory:
      case Failure::too_many_blocks: return Status::out_of_memory;
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
  bool launch_all(const Program& program, Case& request, size_t repetition, Work& work) {
    work.fill = fill_of(repetition);
    work.seed = request.repetitions[repetition].seed;
    bool went = true;
    for (size_t i = 0; went && i < request.launches.count; i++)
      went = lay(program, request, request.launches[i]) &&
             start_launch(program, request, request.launches[i], work);
    return went;
  }

  static bool start_launch(const Program& program, Case& request, const Launch& launch, Work& work) {
    const KernelEntry& kernel = program.kernels[launch.kernel];
    Word words[argument_limit];
    point_words(request, kernel, launch, words);
    work.kernel = kernel.name;
    work.all_threads = kernel.device->all_threads;
    work.one_thread = kernel.device->one_thread;
    work.arguments = words;
    work.grid = {unsigned(launch.grid[0]), unsigned(launch.grid[1]), unsigned(launch.grid[2])};
    work.block = {unsigned(launch.block[0]), unsigned(launch.block[1]), unsigned(launch.block[2])};
    work.dynamic_bytes = size_t(launch.shared_bytes);
#ifdef TOKITAI_WATCH_ACCESSES
    watch_launch(work.dynamic_bytes);
#elif defined(TOKITAI_WATCHED)
    watch_shared(work.dynamic_bytes);
#endif
#ifdef TOKITAI_WATCH_ADDRESS
    poison_around(request, true);
#endif
#ifdef TOKITAI_WATCHED
    watch.running = true;
#endif
    tokitai::launch(work);
#ifdef TOKITAI_WATCH_ACCESSES
    watch_residents(work);
#endif
#ifdef TOKITAI_WATCHED
    watch.running = false;
#endif
#ifdef TOKITAI_WATCH_ADDRESS
    poison_around(request, false);
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
