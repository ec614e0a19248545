// Text of bounded length.
#pragma once

#include <stdarg.h>
#include <stdio.h>

namespace tokitai {

// What does not fit is cut off.
struct Text {
  char* buffer;
  size_t size, used;
};

__attribute__((format(printf, 2, 3))) inline void append(Text& text, const char* format, ...) {
  if (text.used + 1 >= text.size) return;
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(text.buffer + text.used, text.size - text.used, format, values);
  va_end(values);
  if (length > 0) text.used += size_t(length);
  if (text.used >= text.size) text.used = text.size - 1;
}

}  // namespace tokitai
