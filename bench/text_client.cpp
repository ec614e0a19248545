// A client of the kind that speaks text: `text_client CHILD SIZE` prints two matrices of float16 bits as
// decimal numbers into its child's pipe, parses what comes back, and compares it with a scalar loop in
// the kernel's order. Prints the seconds of all of it and of its parts. Here to be measured against.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <vector>

static double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

static std::vector<unsigned short> draw(size_t count, unsigned long long state) {
  std::vector<unsigned short> bits(count);
  for (unsigned short& one : bits) {
    double sum = -6;  // twelve uniform numbers: near enough to a normal one
    for (int i = 0; i < 12; i++) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      sum += double(state >> 11) * 0x1p-53;
    }
    const _Float16 value = _Float16(sum);
    memcpy(&one, &value, sizeof one);
  }
  return bits;
}

static float value(unsigned short bits) {
  _Float16 half;
  memcpy(&half, &bits, sizeof half);
  return float(half);
}

static void print(FILE* pipe, const std::vector<unsigned short>& bits) {
  for (unsigned short one : bits) fprintf(pipe, "%u\n", one);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t size = strtoull(argv[2], nullptr, 10);
  const auto grad_c = draw(size * size, 1), b = draw(size * size, 2);
  const double begin = now();
  int to[2], from[2];
  if (pipe(to) != 0 || pipe(from) != 0) return 2;
  const pid_t child = fork();
  if (child == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    for (int end : {to[0], to[1], from[0], from[1]}) close(end);
    execl(argv[1], argv[1], (char*)nullptr);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  FILE* writer = fdopen(to[1], "w");
  fprintf(writer, "%zu %zu %zu\n", size, size, size);
  print(writer, grad_c);
  print(writer, b);
  fclose(writer);
  const double printed = now();
  // The child answers when it has everything; its answer is taken whole and then parsed.
  std::string text;
  std::vector<char> part(1 << 16);
  double first = 0;
  for (ssize_t got; (got = read(from[0], part.data(), part.size())) > 0;) {
    if (first == 0) first = now();
    text.append(part.data(), size_t(got));
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return 3;
  const double answered = now();
  std::vector<unsigned short> grad_a(size * size);
  const char* at = text.c_str();
  char* end;
  for (unsigned short& one : grad_a) {
    one = (unsigned short)strtoul(at, &end, 10);
    at = end;
  }
  const double parsed = now();
  size_t differing = 0;
  for (size_t i = 0; i < size; i++)
    for (size_t j = 0; j < size; j++) {
      float sum = 0;
      for (size_t t = 0; t < size; t++)
        sum = fmaf(value(grad_c[i * size + t]), value(b[j * size + t]), sum);
      const _Float16 rounded = _Float16(sum);
      unsigned short bits;
      memcpy(&bits, &rounded, sizeof bits);
      differing += bits != grad_a[i * size + j];
    }
  const double compared = now();
  printf("%.6f print %.3f child %.3f parse %.3f replay %.3f differing %zu\n", compared - begin,
         printed - begin, answered - printed, parsed - answered, compared - parsed, differing);
  return 0;
}
