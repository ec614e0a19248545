// Orders and scopes of atomic operations and fences, as the watch of accesses has to know them: a host
// compiler takes orders alone. Elsewhere nothing of this leaves a trace.
#pragma once

#include "sanitizers.hpp"

namespace tokitai {

// Threads that an operation orders for: those of the own ... (PTX ISA, "Scope"; HIP, memory scopes).
enum class Scope : unsigned char { thread, warp, block, device, system };
constexpr int stated_order = -1;  // that of the compiler's builtin

// What an operation states of itself.
struct Stated {
  Scope scope;
  int order;
  constexpr Stated(Scope of, int stated = stated_order) : scope(of), order(stated) {}
};

#ifdef TOKITAI_WATCH_ACCESSES
void watch_scope(Scope scope, int order);
void watch_scope_ends();

// Of the atomic operations and fences of the calling thread while it lives.
struct AtomicScope {
  TOKITAI_UNSANITIZED explicit AtomicScope(Stated stated) { watch_scope(stated.scope, stated.order); }
  TOKITAI_UNSANITIZED AtomicScope(Scope scope, int order) { watch_scope(scope, order); }
  TOKITAI_UNSANITIZED ~AtomicScope() { watch_scope_ends(); }
};
#else
struct AtomicScope {
  explicit AtomicScope(Stated) {}
  AtomicScope(Scope, int) {}
};
#endif

inline void fence(Scope scope, int order = __ATOMIC_SEQ_CST) {
  AtomicScope of(scope, order);
  (void)of;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

}  // namespace tokitai
