// A clock that stops a GPU thread which waits by plain loads: compilers call nothing there, so that it is
// stopped by a signal where it runs on and on. Where every access is watched the callbacks do so.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "waiting.hpp"
#include "shared_layout.hpp"

extern "C" const char __executable_start, etext;

namespace tokitai {

constexpr int tick_signal = SIGURG;  // which is ignored where nobody handles it
constexpr long first_tick_ns = 10 * 1000 * 1000, later_tick_ns = 200 * 1000;

// Of the running thread of the system, in nanoseconds.
TOKITAI_UNSANITIZED inline u64 processor_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return u64(time.tv_sec) * 1000000000u + u64(time.tv_nsec);
}

#ifdef TOKITAI_WATCH_ACCESSES
struct Ticker {};
#else
struct Ticker {
  bool made = false, is_fast = false;
  u64 turns = 0, since = 0;
  Coordinates thread = {};
  inline static __thread Ticker* own = nullptr;

  TOKITAI_UNSANITIZED Ticker() {
    struct sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = tick_signal;
#ifdef sigev_notify_thread_id
    event.sigev_notify_thread_id = int(syscall(SYS_gettid));
#else
    event._sigev_un._tid = int(syscall(SYS_gettid));
#endif
    int number = 0;
    made = syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &number) == 0;
    number_ = number;
    own = this;
    set(first_tick_ns);
  }
  TOKITAI_UNSANITIZED ~Ticker() {
    if (made) syscall(SYS_timer_delete, number_);
    own = nullptr;
  }
  TOKITAI_UNSANITIZED void set(long nanoseconds) {
    const itimerspec every = {{0, nanoseconds}, {0, nanoseconds}};
    if (made) syscall(SYS_timer_settime, number_, 0, &every, nullptr);
  }

 private:
  int number_ = 0;
};

// A sanitizer's runtime may be a part of the executable; it must not be left in the middle.
inline bool is_of_runtime(const char* pc) {
#ifdef TOKITAI_ASAN
  for (size_t i = 0; i < symbol_table.count; i++) {
    const Elf64_Sym& symbol = symbol_table.symbols[i];
    const char* begin = reinterpret_cast<const char*>(symbol_table.base) + symbol.st_value;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || pc < begin || pc >= begin + symbol.st_size) continue;
    const char* name = symbol_table.names + symbol.st_name;
    return strstr(name, "asan") || strstr(name, "sanitizer") || strstr(name, "interceptor");
  }
  return true;
#else
  (void)pc;
  return false;
#endif
}

inline const void* interrupted_at(const void* context) {
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(
      static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#else
  (void)context;
  return nullptr;
#endif
}

// Of a thread that has run since the last tick: it waits, and all others go on. Time in which the system ran
// something else does not count, as a thread that was given none has not run on and on. Where `in_kernel` is
// set threadIdx is the thread that the code at the signal belongs to, also in a block that runs as one loop.
inline void on_tick(const void* context) {
  Ticker* ticker = Ticker::own;
  if (!ticker || current_block == no_block) return;
  Block& block = *current_block;
  if (!block.in_kernel) return;
  if (ticker->turns != block.turns || memcmp(&ticker->thread, &threadIdx, sizeof threadIdx) != 0) {
    ticker->turns = block.turns;
    ticker->thread = threadIdx;
    ticker->since = processor_ns();
    return;
  }
  const long ran = ticker->is_fast ? later_tick_ns : first_tick_ns;
  if (processor_ns() - ticker->since < u64(ran) / 2) return;
  const char* pc = static_cast<const char*>(interrupted_at(context));
  if (pc < &__executable_start || pc >= &etext || is_of_runtime(pc)) return;
  if (!ticker->is_fast) ticker->set(later_tick_ns);
  ticker->is_fast = true;
  wait_for_others({}, pc, Operation::poll, true);
}
#endif

}  // namespace tokitai
