// What watches a harness: AddressSanitizer, or the tool's own watch of every access (tokitai_accesses.hpp),
// which the build asks for by TOKITAI_WATCH_ADDRESS and TOKITAI_WATCH_ACCESSES in both units.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(TOKITAI_WATCH_ADDRESS)
#define TOKITAI_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOKITAI_ASAN
#endif
#endif

// The scheduler's own accesses are none of a GPU thread's.
#ifndef TOKITAI_WATCH_ACCESSES
#define TOKITAI_UNSANITIZED
#elif defined(__clang__)
#define TOKITAI_UNSANITIZED __attribute__((disable_sanitizer_instrumentation))
#else
#define TOKITAI_UNSANITIZED __attribute__((no_sanitize_thread, no_sanitize_undefined))
#endif
