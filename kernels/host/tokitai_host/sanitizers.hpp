// What watches a harness: AddressSanitizer, or the tool's own watch of every access
// (tokitai_tsan.hpp) or of every value (tokitai_values.hpp), which the build asks for by
// TOKITAI_WATCH_ADDRESS, TOKITAI_WATCH_ACCESSES and TOKITAI_WATCH_VALUES in both units.
#pragma once

#include "language.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(TOKITAI_WATCH_ADDRESS)
#define TOKITAI_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOKITAI_ASAN
#endif
#endif

#if defined(TOKITAI_WATCH_ACCESSES) || defined(TOKITAI_WATCH_VALUES)
#define TOKITAI_WATCH_SCHEDULE  // the scheduler tells of blocks, barriers and warps
#endif

// The scheduler's own accesses are none of a GPU thread's. g++ optimises it where it leaves the kernels as they
// are written, which saves an eighth of the time of such a run; clang++ has no attribute for that.
#ifndef TOKITAI_WATCH_SCHEDULE
#define TOKITAI_UNSANITIZED
#elif defined(__clang__)
#define TOKITAI_UNSANITIZED __attribute__((disable_sanitizer_instrumentation))
#else
#define TOKITAI_UNSANITIZED __attribute__((no_sanitize_thread, no_sanitize_undefined, optimize("O2")))
#endif

// Behind the first, values are taken to be set: what calls a kernel is not followed.
#ifdef TOKITAI_WATCH_VALUES
#define TOKITAI_VALUES_SET __attribute__((no_sanitize("kernel-memory")))
#else
#define TOKITAI_VALUES_SET
#endif

namespace tokitai {

// For values that leave what is followed: a shuffle's come back, of others every bit has to be set.
#ifdef TOKITAI_WATCH_VALUES
void watch_given(const u64* word);
void watch_taken(const u64* word);
void watch_used(const void* value, size_t size);
void watch_resumed();
template <class T>
inline void used(const T& value) {
  watch_used(&value, sizeof value);
}
#else
inline void watch_given(const u64*) {}
inline void watch_taken(const u64*) {}
inline void watch_resumed() {}
template <class T>
inline void used(const T&) {}
#endif

}  // namespace tokitai
