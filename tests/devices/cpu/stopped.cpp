// Takes a GPU thread's turn away at every single instruction of its kernels in turn, as the clock of
// ticker.hpp may do at any of them. The processor traps after each instruction (the flag TF of x86).
#include <hip/hip_runtime.h>

#include <tokitai_host/launch.hpp>

#include <climits>
#include <cstdio>

// What the unit that serves kernels has.
__thread unsigned char tokitai_shared_marker[16];
void tokitai::die_of_misaligned_atomic(const void*, size_t) { abort(); }

namespace {

using namespace tokitai;

// Every kernel changes its elements by its own thread alone and not twice to the same value, so that a thread
// that runs twice, in part or not at all gives other numbers.
__global__ void plain(int* x, int n) {
  const int i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z) +
                blockIdx.x * blockDim.x * blockDim.y * blockDim.z;
  if (i < n) x[i] = 3 * x[i] + i + 1;
}

__global__ void looped(int* x, int n) {
  const int i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z) +
                blockIdx.x * blockDim.x * blockDim.y * blockDim.z;
  for (int k = 0; k < 3; k++)
    if (i < n - k) x[i] = 3 * x[i] + i + 1;
}

__global__ void mirrored(int* x, int n) {
  __shared__ int kept[64];
  const int i = threadIdx.x, count = blockDim.x, base = blockIdx.x * count;
  kept[i] = base + i < n ? x[base + i] : 0;
  __syncthreads();
  const int odd = __syncthreads_count(i % 2);
  if (base + i < n) x[base + i] = 3 * kept[count - 1 - i] + odd + 1;
}

__global__ void shuffled(int* x, int n) {
  const int i = threadIdx.x, base = blockIdx.x * blockDim.x;
  int value = base + i < n ? x[base + i] : 0;
  value += __shfl_xor_sync(0xff, value, 1);
  const unsigned odd = __ballot_sync(0xff, value % 2);
  if (i % 2 == 0) __syncwarp(0x55);
  atomicAdd(&x[n], value);
  if (base + i < n) x[base + i] = value + int(__popc(odd));
}

constexpr int most = 24;
constexpr long most_tried = 50;
struct Arguments {
  int* x;
  int n;
};

long countdown;  // instructions of kernels left until the turn is taken away

// From here on, or no more. Flags pass from one stack to the next.
TOKITAI_UNSANITIZED __attribute__((noinline)) void trap(bool is) {
  if (is) asm volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" : : : "memory", "cc");
  else asm volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" : : : "memory", "cc");
}

// Whatever the time is that the thread has run.
void on_trap(int, siginfo_t*, void* context) {
  if (current_block == no_block || !current_block->in_kernel || !Ticker::own) return;
  if (countdown-- != 0) return;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
  Ticker::own->turns = current_block->turns;
  Ticker::own->thread = threadIdx;
  Ticker::own->since = 0;
  on_tick(context);
}

template <auto kernel>
void run(Coordinates block, unsigned blocks, int n, unsigned long long seed, int* x) {
  for (int i = 0; i <= n; i++) x[i] = i % 7;
  const Arguments arguments = {x, n};
  Work work = {};
  work.kernel = "kernel";
  work.all_threads = [](const void* words, Block& of) {
    trap(true);
    const auto& own = *static_cast<const Arguments*>(words);
    for_each_thread<kernel>(of, own.x, own.n);
    trap(false);
  };
  work.one_thread = [](const void* words) {
    if (countdown >= 0) trap(true);
    const auto& own = *static_cast<const Arguments*>(words);
    kernel(own.x, own.n);
    trap(false);
  };
  work.arguments = &arguments;
  static const unsigned char fill[8] = {};
  work.fill = {fill, sizeof fill};
  work.grid = {blocks, 1, 1};
  work.block = block;
  work.seed = seed;
  work.watched = no_index;
  launch(work);
  trap(false);
  if (work.failed) {
    printf("failed: %s\n", work.failure);
    exit(1);
  }
}

// Tries them all, or some at equal distances; says of how many the numbers were others.
template <auto kernel>
bool try_all(const char* name, Coordinates block, unsigned blocks, int n, unsigned long long seed, bool every = false) {
  int right[most], found[most];
  countdown = LONG_MAX;
  run<kernel>(block, blocks, n, seed, right);
  const long count = LONG_MAX - countdown, step = every ? 1 : count / most_tried + 1;
  long tried = 0, wrong = 0;
  for (long at = 0; at < count; at += step, tried++) {
    countdown = at;
    run<kernel>(block, blocks, n, seed, found);
    if (memcmp(right, found, size_t(n + 1) * sizeof *right) == 0) continue;
    if (!wrong++)
      for (int i = 0; i <= n; i++)
        if (right[i] != found[i])
          printf("  at %ld: element %d is %d, not %d\n", at, i, found[i], right[i]);
  }
  printf("%s %ux%ux%u seed %llx: %ld of %ld instructions tried, %ld wrong\n", name, block.x, block.y,
         block.z, seed, tried, count, wrong);
  return tried > 0 && wrong == 0;
}

}  // namespace

// With any argument: the kernel without barriers alone.
int main(int count, char**) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  struct sigaction action = {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
  sigaction(SIGTRAP, &action, nullptr);
  bool all = true;
  for (unsigned long long seed : {natural_order, reverse_order}) {
    all &= try_all<plain>("plain", {2, 2, 1}, 1, 4, seed, true);
    if (count > 1) continue;
    all &= try_all<plain>("plain", {2, 3, 2}, 2, 23, seed);
    all &= try_all<looped>("looped", {3, 2, 1}, 2, 11, seed);
    all &= try_all<mirrored>("mirrored", {6, 1, 1}, 2, 12, seed);
    all &= try_all<shuffled>("shuffled", {8, 1, 1}, 2, 16, seed);
  }
  return all ? 0 : 1;
}
