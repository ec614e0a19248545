// Kernels whose process goes wrong: it dies, hangs, floods its output or breaks the protocol. They
// use what only a process on the host has.
#include <hip/hip_runtime.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#define FIRST_THREAD                                        \
  const int i = blockIdx.x * blockDim.x + threadIdx.x;      \
  if (i < n) y[i] = x[i];                                   \
  if (i != 0) return;

// The pipe on which the answer goes, as the command line names it.
static int response_pipe() {
  static char words[1 << 16];
  const int file = open("/proc/self/cmdline", O_RDONLY);
  const ssize_t size = read(file, words, sizeof words - 1);
  close(file);
  for (ssize_t at = 0; at < size; at += ssize_t(strlen(words + at)) + 1) {
    int found;
    if (sscanf(words + at, "--response-fd=%d", &found) == 1) return found;
  }
  return -1;
}

static void respond(const void* bytes, size_t count) {
  if (write(response_pipe(), bytes, count) != ssize_t(count)) abort();
}

static void flood(int megabytes) {
  static char line[1 << 20];
  memset(line, 'x', sizeof line);
  line[sizeof line - 1] = '\n';
  for (int i = 0; megabytes < 0 || i < megabytes; i++)
    if (write(1, line, sizeof line) < 0) _exit(9);
}

__global__ void right(const int* x, int* y, int n) { FIRST_THREAD }

__global__ void writes_null(const int* x, int* y, int n) {
  FIRST_THREAD
  *reinterpret_cast<volatile int*>(8) = 1;
}

__global__ void never_ends(const int* x, int* y, int n) {
  FIRST_THREAD
  for (volatile int* here = y;;) here[0] = x[0];
}

// Never ends, and says in the working folder that it has begun.
__global__ void waits(const int* x, int* y, int n) {
  FIRST_THREAD
  close(creat("running", 0600));
  for (;;) usleep(10000);
}

__global__ void aborts(const int* x, int* y, int n) {
  FIRST_THREAD
  printf("about to abort\n");
  abort();
}

__global__ void leaves(const int* x, int* y, int n) {
  FIRST_THREAD
  _exit(0);
}

__global__ void is_killed(const int* x, int* y, int n) {
  FIRST_THREAD
  kill(getpid(), SIGKILL);
}

__global__ void runs_out_of_memory(const int* x, int* y, int n) {
  FIRST_THREAD
  y[0] = int(strlen(new char[size_t(1) << 60]));
}

__global__ void short_frame(const int* x, int* y, int n) {
  FIRST_THREAD
  const unsigned long long words[] = {64, 1, 1};
  respond(words, sizeof words);
  _exit(0);
}

__global__ void garbage_frame(const int* x, int* y, int n) {
  FIRST_THREAD
  const unsigned long long words[] = {24, 77, 77, 77};
  respond(words, sizeof words);
}

__global__ void huge_frame(const int* x, int* y, int n) {
  FIRST_THREAD
  const unsigned long long length = ~0ull;
  respond(&length, sizeof length);
}

// An answer that says ok for a case that has not run.
__global__ void forged_frame(const int* x, int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0;
  if (i != 0) return;
  const unsigned long long words[] = {8 * 11, 1, 1, 0, 2, 1, 1, 2, 0, 0, 0, 0};
  respond(words, sizeof words);
}

__global__ void prints_gigabytes(const int* x, int* y, int n) {
  FIRST_THREAD
  flood(1024);
}

__global__ void prints_for_ever(const int* x, int* y, int n) {
  FIRST_THREAD
  flood(-1);
}

// Leaves a process behind that has left the group and holds all descriptors.
__global__ void leaves_a_process(const int* x, int* y, int n) {
  FIRST_THREAD
  if (fork() == 0) {
    setsid();
    for (;;) pause();
  }
}
