// AddressSanitizer around kernels: gaps about buffers and shared arrays are poisoned while a launch
// is on, and each of its reports becomes a finding. The unit that serves is itself not
// instrumented.
#pragma once

#include "tokitai_watch.hpp"

extern "C" {
void __asan_set_error_report_callback(void (*)(const char*));
void* __asan_get_report_pc(void);
void* __asan_get_report_bp(void);
void* __asan_get_report_address(void);
int __asan_get_report_access_type(void);
size_t __asan_get_report_access_size(void);
const char* __asan_get_report_description(void);
}

namespace tokitai {

inline void on_address_report(const char*) {
  constexpr uint64_t enough = 50;
  const auto* address = static_cast<const unsigned char*>(__asan_get_report_address());
  const size_t size = __asan_get_report_access_size();
  const bool writes = __asan_get_report_access_type() != 0;
  const Spot spot =
      spot_at(__asan_get_report_pc(), static_cast<void* const*>(__asan_get_report_bp()));
  const char* what = __asan_get_report_description();
  // Gaps are poisoned by the harness: the runtime has no name for what lies around them.
  const bool gap = strcmp(what, "use-after-poison") == 0 || strcmp(what, "unknown-crash") == 0;
  const char* kind = gap ? "out-of-bounds" : what;
  Finding* found = finding(kind, spot, nullptr);
  if (found && found->count == 1) {
    say(*found, "%s: %s of %zu byte%s", kind, writes ? "write" : "read", size,
        size == 1 ? "" : "s");
    if (gap) name_address(*found, address, size);
  }
  if (watch.reports < enough) return;
  // Every thread of a large grid may do it: what is known suffices.
  if (found) append_words(*found, "; ended after 50 reports");
  watch_flush(0, false);
  _exit(exit_garbage);
}

// Poisons, or frees, the memory around buffers and shared arrays.
inline void poison_around(const Case& request, bool poison) {
  const auto mark = poison ? __asan_poison_memory_region : __asan_unpoison_memory_region;
  for (size_t b = 0; b < request.buffers.count; b++) {
    const Buffer& buffer = request.buffers[b];
    if (!buffer.pointer || buffer.in_symbol) continue;
    mark(buffer.pointer - buffer.front, buffer.front);
    mark(buffer.pointer + buffer.bytes, buffer.back);
  }
}

}  // namespace tokitai
