// Switching between the stacks of one OS thread.
//
// An own switch saves what the platform's calling convention preserves across a call and nothing
// else; ucontext also saves the signal mask, by a system call, and costs ten times as much. It
// serves the processors without an own switch, and any processor with -DTOKITAI_UCONTEXT.
#pragma once

#include "language.hpp"
#include "sanitizers.hpp"

#if !defined(TOKITAI_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define TOKITAI_UCONTEXT
#endif

#ifdef TOKITAI_UCONTEXT
#include <ucontext.h>

namespace tokitai {

struct Context {
  ucontext_t saved;
};

TOKITAI_UNSANITIZED inline void context_prepare(Context& context, char* stack, size_t bytes,
                                                void (*entry)()) {
  getcontext(&context.saved);
  context.saved.uc_stack.ss_sp = stack;
  context.saved.uc_stack.ss_size = bytes;
  context.saved.uc_link = nullptr;
  makecontext(&context.saved, entry, 0);
}

TOKITAI_UNSANITIZED inline void context_switch(Context& from, Context& to) {
  swapcontext(&from.saved, &to.saved);
}

constexpr const char* context_switch_name = "ucontext";

}  // namespace tokitai

#else

extern "C" void tokitai_switch_stacks(void** saved_stack_pointer, void* stack_pointer);

#if defined(TOKITAI_KERNEL_UNIT)
// Defined in the unit that serves kernels.
#elif defined(__x86_64__)
// System V ABI: rbx, rbp, r12 to r15 and the stack pointer belong to the caller.
asm(R"(
.text
.p2align 4
.globl tokitai_switch_stacks
.hidden tokitai_switch_stacks
.type tokitai_switch_stacks, @function
tokitai_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tokitai_switch_stacks, .-tokitai_switch_stacks
)");
#else
// AAPCS64: x19 to x28, the frame pointer, the link register and the low halves of v8 to v15.
asm(R"(
.text
.p2align 4
.globl tokitai_switch_stacks
.hidden tokitai_switch_stacks
.type tokitai_switch_stacks, %function
tokitai_switch_stacks:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tokitai_switch_stacks, .-tokitai_switch_stacks
)");
#endif

namespace tokitai {

struct Context {
  void* stack_pointer;
};

// Lays out the frame that the first switch to `context` pops, so that it returns into `entry`.
TOKITAI_UNSANITIZED inline void context_prepare(Context& context, char* stack, size_t bytes,
                                                void (*entry)()) {
  void** top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack + bytes) & ~uintptr_t(63));
#if defined(__x86_64__)
  constexpr int registers = 6;
  *--top = nullptr;  // the return address of `entry`: ends a debugger's backtrace
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < registers; i++) *--top = nullptr;
#else
  constexpr int words = 20, link_register = 11;
  top -= words;
  for (int i = 0; i < words; i++) top[i] = nullptr;
  top[link_register] = reinterpret_cast<void*>(entry);
#endif
  context.stack_pointer = top;
}

TOKITAI_UNSANITIZED inline void context_switch(Context& from, Context& to) {
  tokitai_switch_stacks(&from.stack_pointer, to.stack_pointer);
}

#if defined(__x86_64__)
constexpr const char* context_switch_name = "x86-64 assembly";
#else
constexpr const char* context_switch_name = "aarch64 assembly";
#endif

}  // namespace tokitai

#endif
