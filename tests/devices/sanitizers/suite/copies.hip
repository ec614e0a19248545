// Copies of memory and structs, bytes that nobody has set, padding and constants.
#include <hip/hip_runtime.h>
#include <string.h>

#define KERNEL template <bool wrong> __global__ void

struct Row {
  int word[5];
};
struct Best {
  double value;
  int place;
};
struct Small {
  short key;
  char tag;
  float weight;
};

__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};

// 1 32
KERNEL constant_written(const float* x, float* y, float* ws, int* flags, int n) {
  const int at = threadIdx.x % 4;
  float* place = wrong ? const_cast<float*>(&table[at]) : &ws[threadIdx.x];
  if (threadIdx.x < 4) *place = x[at];  // <- constant-write
  y[threadIdx.x] = table[3];
}

// 1 12
KERNEL copy_too_long(const float* x, float* y, float* ws, int* flags, int n) {
  const int at = threadIdx.x * 4;
  memcpy(ws + at, x + at, (wrong && threadIdx.x < 11 ? 5 : 4) * sizeof(float));  // <- race
}

// 1 12
KERNEL copied_rows(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ Row rows[12];
  memcpy(&rows[threadIdx.x], x + threadIdx.x * 5, sizeof(Row));
  if (!wrong) __syncthreads();
  y[threadIdx.x] = float(rows[11 - threadIdx.x].word[4]);  // <- race
}

// 1 12
KERNEL assigned_rows(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ Row rows[12];
  Row mine;
  for (int i = 0; i < 5; i++) mine.word[i] = int(threadIdx.x) + i;
  rows[threadIdx.x] = mine;
  if (!wrong) __syncthreads();
  const Row other = rows[11 - threadIdx.x];  // <- race
  y[threadIdx.x] = float(other.word[2]);
}

// 1 16
KERNEL cleared_by_memset(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[16];
  if (threadIdx.x == 0) memset(box, 0, sizeof box);
  if (!wrong) __syncthreads();
  box[threadIdx.x] = x[threadIdx.x];  // <- race
  __syncthreads();
  y[threadIdx.x] = box[threadIdx.x];
}

// 1 16
KERNEL moved_by_one(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[20];
  if (threadIdx.x < 4) box[16 + threadIdx.x] = 0.0f;
  box[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (wrong ? threadIdx.x < 2 : threadIdx.x == 0) memmove(box + 1, box, 16 * sizeof(float));  // <- race
  __syncthreads();
  y[threadIdx.x] = box[threadIdx.x];
}

// 1 64
KERNEL pairs_with_padding(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ Best best[64];
  const int t = threadIdx.x;
  best[t].value = x[t];
  best[t].place = t;
  __syncthreads();
  for (int s = 32; s > 0; s /= 2) {
    if (t < s && best[t + s].value > best[t].value) best[t] = best[t + s];  // <- race
    if (!wrong) __syncthreads();
  }
  if (t == 0) {
    Best all = best[0];
    y[0] = float(all.place);
  }
}

// 1 32
KERNEL small_structs(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ Small all[32];
  const int t = threadIdx.x;
  all[t].key = short(t);
  all[t].tag = 'a';
  if (!wrong || t % 2) all[t].weight = x[t];
  __syncthreads();
  Small other = all[31 - t];
  y[t] = all[31 - t].weight + float(other.key);  // <- uninitialised-read
}

// 1 32
KERNEL unset_tail(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float box[32];
  if (!wrong || threadIdx.x < 24) box[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = box[threadIdx.x];  // <- uninitialised-read
}

// 1 32
KERNEL unset_bytes(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ int box[32];
  auto* bytes = reinterpret_cast<unsigned char*>(&box[threadIdx.x]);
  for (int i = 0; i < (wrong ? 3 : 4); i++) bytes[i] = 1;
  y[threadIdx.x] = float(box[threadIdx.x]);  // <- uninitialised-read
}

// 1 16
KERNEL copied_unset(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float from[16], to[16];
  if (!wrong || threadIdx.x < 12) from[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 4) memcpy(&to[threadIdx.x * 4], &from[threadIdx.x * 4], 16);  // <- uninitialised-read
  __syncthreads();
  y[threadIdx.x] = to[threadIdx.x];
}

// 1 32
KERNEL unset_sum(const float* x, float* y, float* ws, int* flags, int n) {
  if (!wrong) ws[threadIdx.x] = 0.0f;
  ws[threadIdx.x] += x[threadIdx.x];  // <- uninitialised-read
}

// 1 16
KERNEL vectors(const float* x, float* y, float* ws, int* flags, int n) {
  __shared__ float4 box[16];
  const float v = x[threadIdx.x];
  box[threadIdx.x] = make_float4(v, v, v, v);
  if (!wrong) __syncthreads();
  const float4 other = box[15 - threadIdx.x];  // <- race
  y[threadIdx.x] = other.x + other.w;
}
