// A fiber: a stack of its own that a GPU thread runs on. What sanitizers must know of it is here.
#pragma once

#include <sys/mman.h>

#include "context_switch.hpp"

#ifdef TOKITAI_ASAN
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef TOKITAI_STACK_KIB
#ifdef TOKITAI_ASAN
#define TOKITAI_STACK_KIB 256
#else
#define TOKITAI_STACK_KIB 128
#endif
#endif

namespace tokitai {

constexpr size_t stack_bytes = size_t(TOKITAI_STACK_KIB) << 10;
// Wider than a page, so that a frame of large arrays cannot step over it.
constexpr size_t guard_bytes = size_t(64) << 10;

struct Fiber {
  Context context;
  char* stack;  // null until first used; for the fiber of the OS thread itself always
#ifdef TOKITAI_ASAN
  void* fake_stack;
  const void* bottom;
  size_t bottom_bytes;
  bool unwound;  // all that ran on the stack has returned, and has left nothing poisoned
#endif
};

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

// Maps a stack above a guard. Returns false where the kernel has no memory left.
TOKITAI_UNSANITIZED inline bool fiber_allocate(Fiber& fiber) {
  const size_t bytes = guard_bytes + stack_bytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  // Linux 6.13 and later guard pages without a mapping of their own. Before, 1024 stacks on many OS
  // threads may exhaust vm.max_map_count; then the stack stays unguarded rather than unusable.
  if (madvise(memory, guard_bytes, MADV_GUARD_INSTALL) != 0)
    (void)mprotect(memory, guard_bytes, PROT_NONE);
  fiber.stack = static_cast<char*>(memory) + guard_bytes;
#ifdef TOKITAI_ASAN
  fiber.bottom = fiber.stack;
  fiber.bottom_bytes = stack_bytes;
#endif
  return true;
}

// Makes the next switch to `fiber` start `entry`. `index` staggers the tops of the stacks: at equal
// offsets of large powers of two they would compete for the same cache sets.
TOKITAI_UNSANITIZED inline void fiber_prepare(Fiber& fiber, unsigned index, void (*entry)()) {
#ifdef TOKITAI_ASAN
  if (!fiber.unwound) __asan_unpoison_memory_region(fiber.stack, stack_bytes);
  fiber.unwound = false;
  fiber.fake_stack = nullptr;
#endif
  context_prepare(fiber.context, fiber.stack, stack_bytes - (index * 192 & 0x3fff), entry);
}

// The fiber of the calling OS thread, which is not prepared but only switched away from.
TOKITAI_UNSANITIZED inline void fiber_adopt(Fiber& fiber) {
  (void)fiber;
#ifdef TOKITAI_ASAN
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void* bottom;
  pthread_attr_getstack(&attributes, &bottom, &fiber.bottom_bytes);
  fiber.bottom = bottom;
  pthread_attr_destroy(&attributes);
#endif
}

// Must be the first thing that a fiber's entry does.
TOKITAI_UNSANITIZED inline void fiber_entered() {
#ifdef TOKITAI_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

// Says that what a fiber ran has returned, in front of the switch that leaves it for good.
TOKITAI_UNSANITIZED inline void fiber_unwound(Fiber& fiber) {
  (void)fiber;
#ifdef TOKITAI_ASAN
  fiber.unwound = true;
#endif
}

// `leaving_for_good`: nobody will switch back to `from` before it is prepared anew.
TOKITAI_UNSANITIZED inline void fiber_switch(Fiber& from, Fiber& to, bool leaving_for_good) {
  (void)leaving_for_good;
#ifdef TOKITAI_ASAN
  __sanitizer_start_switch_fiber(leaving_for_good ? nullptr : &from.fake_stack, to.bottom,
                                 to.bottom_bytes);
#endif
  context_switch(from.context, to.context);
#ifdef TOKITAI_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

}  // namespace tokitai
