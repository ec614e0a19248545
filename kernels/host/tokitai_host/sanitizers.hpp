// Which sanitizer a harness is built with, if any.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define TOKITAI_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define TOKITAI_TSAN
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(TOKITAI_ASAN)
#define TOKITAI_ASAN
#endif
#if __has_feature(thread_sanitizer) && !defined(TOKITAI_TSAN)
#define TOKITAI_TSAN
#endif
#endif

// The scheduler's own accesses would be reported as races between the fibers that it serves.
#ifndef TOKITAI_TSAN
#define TOKITAI_UNSANITIZED
#elif defined(__clang__)
#define TOKITAI_UNSANITIZED __attribute__((disable_sanitizer_instrumentation))
#else
#define TOKITAI_UNSANITIZED __attribute__((no_sanitize_thread))
#endif
