// Signals become a last answer: what happened, where in memory, and in which GPU thread. Then the
// child dies of the same signal.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <initializer_list>

#include "tokitai_case.hpp"
#include "tokitai_wrapped_index.hpp"

namespace tokitai {

struct FaultContext {
  int response = -1;
  Case* running = nullptr;
  int taken = 0;
};
inline FaultContext faults;

// What a device knows of a fault: it appends the place in the grid, and may explain the address.
inline void describe_fault_place(char* text, size_t size);
inline bool explain_address(const unsigned char* address, char* text, size_t size);
inline void note_fault(const char* what, const void* address, const void* context);

inline const char* signal_name(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    default: return "SIGABRT";
  }
}

// "read", "write", or "access" where the processor does not say.
inline const char* access_name(const ucontext_t* context) {
#if defined(__x86_64__)
  constexpr greg_t write_bit = 2;  // of the page fault's error code (Intel SDM vol. 3, 4.7)
  return context->uc_mcontext.gregs[REG_ERR] & write_bit ? "write" : "read";
#else
  (void)context;
  return "access";
#endif
}

// The buffer whose 32-bit index wrapped: that near which an address lies when it is moved by 2^32 elements.
inline bool explain_by_wrapped_index(const unsigned char* address, const char* access, char* text,
                                     size_t size) {
  if (!faults.running) return false;
  const Word at = reinterpret_cast<Word>(address);
  WrappedIndex found;
  char far[64];
  for (size_t i = 0; i < faults.running->buffers.count; i++) {
    const Buffer& buffer = faults.running->buffers[i];
    if (!buffer.pointer) continue;
    const Word begin = reinterpret_cast<Word>(buffer.pointer);
    if (!wraps_nearer(at, begin, begin + buffer.bytes, found)) continue;
    words_of(found, far, sizeof far);
    snprintf(text, size, "%s of %p, %s buffer %zu (counted from 0): %s", access,
             static_cast<const void*>(address), far, i, wrapped_around);
  }
  return found.element != 0;
}

// The buffer that an address lies next to: the nearest payload within `reach` bytes.
inline bool explain_by_buffers(const unsigned char* address, const char* access, char* text,
                               size_t size) {
  constexpr Word reach = Word(1) << 32;
  if (!faults.running) return false;
  Word nearest = reach;
  for (size_t i = 0; i < faults.running->buffers.count; i++) {
    const Buffer& buffer = faults.running->buffers[i];
    if (!buffer.pointer) continue;
    const unsigned char* end = buffer.pointer + buffer.bytes;
    const bool before = address < buffer.pointer;
    const Word distance = before ? Word(buffer.pointer - address) : Word(address - end);
    if ((!before && address < end) || distance >= nearest) continue;
    nearest = distance;
    snprintf(text, size, "%s of %p, %llu bytes %s buffer %zu (counted from 0)", access,
             static_cast<const void*>(address), static_cast<unsigned long long>(distance),
             before ? "before" : "past the end of", i);
  }
  return nearest < reach;
}

inline void explain_memory_fault(const siginfo_t* info, const ucontext_t* context, char* text,
                                 size_t size) {
  constexpr uintptr_t near_null = 65536;
  const auto* address = static_cast<const unsigned char*>(info->si_addr);
  const char* access = access_name(context);
  if (explain_address(address, text, size)) return;
  // A non-canonical address comes without its value, and so does one that a vector may not have: copies
  // of whole structs are not checked by Clang.
  if (info->si_code == SI_KERNEL)
    snprintf(text, size, "%s of an address that does not exist, or misaligned %s of a vector", access,
             access);
  else if (reinterpret_cast<uintptr_t>(address) < near_null)
    snprintf(text, size, "null pointer %s at address %p", access, info->si_addr);
  else if (!explain_by_wrapped_index(address, access, text, size) &&
           !explain_by_buffers(address, access, text, size))
    snprintf(text, size, "%s of %p, which is no buffer's", access, info->si_addr);
}

// Of several OS threads that fault, one tells; the others wait for the end.
inline void take_fault() {
  while (__atomic_exchange_n(&faults.taken, 1, __ATOMIC_ACQ_REL)) pause();
}

// Answers for the one who has taken the fault, and dies of the signal.
inline void die(int signal, const char* what) {
  char where[512] = "", message[1200];
  describe_fault_place(where, sizeof where);
  snprintf(message, sizeof message, "%s: %s%s", signal_name(signal), what, where);
  const Word words[] = {opcode_run, faults.running ? faults.running->number : 0,
                        Word(Status::fault)};
  write_frame(faults.response, words, 3, message);
  ::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
}

inline void on_fault(int signal, siginfo_t* info, void* context) {
  take_fault();
  char what[512] = "";
  if (signal == SIGSEGV || signal == SIGBUS)
    explain_memory_fault(info, static_cast<const ucontext_t*>(context), what, sizeof what);
  else if (signal == SIGFPE)
    snprintf(what, sizeof what, "division of an integer by zero, or its overflow");
  else if (signal == SIGILL)
    snprintf(what, sizeof what, "an instruction that this processor does not have, or a trap");
  else
    snprintf(what, sizeof what, "abort or failed assertion (its text is in the log)");
  note_fault(what, signal == SIGSEGV || signal == SIGBUS ? info->si_addr : nullptr, context);
  die(signal, what);
}

// An alternate stack for the calling OS thread: the one that overflowed is of no use to a handler.
inline void prepare_thread_for_faults() {
  constexpr size_t bytes = 65536;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = bytes;
  sigaltstack(&stack, nullptr);
}

inline void catch_faults(int response) {
  faults.response = response;
  prepare_thread_for_faults();
  // A core file would hold the whole memory file.
  struct rlimit core;
  if (getrlimit(RLIMIT_CORE, &core) == 0) {
    core.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &core);
  }
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace tokitai
