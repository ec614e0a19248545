// Frames over the child's pipes: a little-endian u64 length, then the payload.
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tokitai_program.hpp"

namespace tokitai {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words travel as they lie in memory");

constexpr Word frame_limit = Word(1) << 20;

// Exit codes of the child itself; a signal or 0 (end of the request pipe) are the others.
constexpr int exit_usage = 2, exit_garbage = 3, exit_no_device = 4, exit_pipe = 5;

[[noreturn]] inline void end_with(int code, const char* why) {
  fprintf(stderr, "tokitai child: %s\n", why);
  fflush(nullptr);
  _exit(code);
}

enum class Read { whole, end_of_file, cut_off };

// Reads exactly `bytes`. End of file is only clean in front of the first byte.
inline Read read_all(int descriptor, void* target, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = read(descriptor, static_cast<char*>(target) + done, bytes - done);
    if (got > 0)
      done += size_t(got);
    else if (got == 0)
      return done ? Read::cut_off : Read::end_of_file;
    else if (errno != EINTR)
      return Read::cut_off;
  }
  return Read::whole;
}

inline bool write_all(int descriptor, const void* source, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t put = write(descriptor, static_cast<const char*>(source) + done, bytes - done);
    if (put >= 0)
      done += size_t(put);
    else if (errno != EINTR)
      return false;
  }
  return true;
}

// A frame of words with a text behind them.
inline bool write_frame(int descriptor, const Word* words, size_t count, const char* text) {
  const size_t text_bytes = strlen(text);
  const Word length = count * sizeof(Word) + text_bytes;
  return write_all(descriptor, &length, sizeof length) &&
         write_all(descriptor, words, count * sizeof(Word)) &&
         write_all(descriptor, text, text_bytes);
}

// Zeroed memory for plain structs, freed at the end of its scope.
template <class T>
struct Array {
  T* items = nullptr;
  size_t count = 0;
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { free(items); }
  void allocate(size_t wanted) {
    free(items);
    items = static_cast<T*>(calloc(wanted ? wanted : 1, sizeof(T)));
    if (!items) end_with(exit_garbage, "no memory for a request");
    count = wanted;
  }
  T& operator[](size_t i) { return items[i]; }
  const T& operator[](size_t i) const { return items[i]; }
  T* begin() { return items; }
  T* end() { return items + count; }
};

}  // namespace tokitai
