"""Kernels, and what a draft of each is to have so that faults show."""

from __future__ import annotations

#: Source and wants, by the kernel's name; see `test_telling.py`.
KERNELS: dict[str, tuple[str, list[tuple[str | float, ...]]]] = {
    # Carry over tiles, by while and a shared variable.
    "prefix": (
        """
constexpr int TILE = 128;
__global__ void prefix(const float* in, float* out, int count) {
  __shared__ float carry;
  __shared__ float part[TILE];
  if (threadIdx.x == 0) carry = 0;
  int base = 0;
  while (base < count) {
    int at = base + threadIdx.x;
    part[threadIdx.x] = at < count ? in[at] : 0.f;
    __syncthreads();
    float sum = carry;
    for (int k = 0; k <= threadIdx.x; ++k) sum += part[k];
    if (at < count) out[at] = sum;
    __syncthreads();
    if (threadIdx.x == TILE - 1) carry = sum;
    __syncthreads();
    base += TILE;
  }
}
void run(const float* in, float* out, int count) { prefix<<<1, TILE>>>(in, out, count); }
""",
        [("shape", "count > 3 * 128 and count % 128 != 0")],
    ),
    # A cap in a variable of the host's.
    "spread": (
        """
#include <algorithm>
__global__ void spread(const float* a, float* b, long total) {
  long step = (long)gridDim.x * blockDim.x;
  for (long k = (long)blockIdx.x * blockDim.x + threadIdx.x; k < total; k += step) b[k] = a[k] + 1;
}
void run(const float* a, float* b, long total) {
  const int threads = 128;
  int blocks = std::min<int>((total + threads - 1) / threads, 8);
  spread<<<blocks, threads>>>(a, b, total);
}
""",
        [("shape", "(total + 127) // 128 > 8")],
    ),
    # Seven sizes, no two equal in all but the first.
    "shuffle": (
        """
__global__ void shuffle(const float* src, float* dst, int n0, int n1, int n2, int n3, int n4, int n5,
                        int n6) {
  int z = blockIdx.x * blockDim.x + threadIdx.x;
  if (z >= n6) return;
  for (int a = 0; a < n0; ++a) for (int b = 0; b < n1; ++b) for (int c = 0; c < n2; ++c)
  for (int d = 0; d < n3; ++d) for (int e = 0; e < n4; ++e) for (int f = 0; f < n5; ++f) {
    long from = (((((long)(a * n1 + b) * n2 + c) * n3 + d) * n4 + e) * n5 + f) * n6 + z;
    long to = (((((long)(b * n0 + a) * n2 + c) * n3 + d) * n4 + e) * n5 + f) * n6 + z;
    dst[to] = src[from];
  }
}
""",
        [("unequal", 7)],
    ),
    # Rows are tiled, columns are not: the tail is of the rows.
    "rows": (
        """
#define ROWS 8
__global__ void rows(const float* m, float* r, int height, int width) {
  for (int top = 0; top < height; top += ROWS) {
    int y = top + threadIdx.x;
    if (y < height) {
      float s = 0;
      for (int x = 0; x < width; ++x) s += m[y * width + x];
      r[y] = s;
    }
  }
}
void run(const float* m, float* r, int height, int width) { rows<<<1, ROWS>>>(m, r, height, width); }
""",
        [("shape", "height > 3 * 8 and height % 8 != 0")],
    ),
    # Welford, without the words mean or variance.
    "welford": (
        """
__global__ void welford(const float* x, float* a, float* b, int n) {
  float m = 0, q = 0;
  for (int i = 0; i < n; ++i) {
    float d = x[blockIdx.x * n + i] - m;
    m += d / (i + 1);
    q += d * (x[blockIdx.x * n + i] - m);
  }
  a[blockIdx.x] = m;
  b[blockIdx.x] = q / n;
}
""",
        [("profile", "offset")],
    ),
    # Squares less the square, in a helper.
    "moments": (
        """
__device__ float fold(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  return v;
}
__global__ void moments(const float* x, float* out, int n) {
  float s = 0, t = 0;
  for (int i = threadIdx.x; i < n; i += 32) {
    float v = x[blockIdx.x * n + i];
    s += v;
    t += v * v;
  }
  s = fold(s) / n;
  t = fold(t) / n;
  if (threadIdx.x == 0) out[blockIdx.x] = t - s * s;
}
void run(const float* x, float* out, int rows, int n) { moments<<<rows, 32>>>(x, out, n); }
""",
        [("profile", "offset")],
    ),
    # A count that may be 0, which the kernel tests.
    "averaged": (
        """
__global__ void averaged(const float* sums, const int* counts, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int c = counts[i];
  out[i] = c > 0 ? sums[i] / c : 0.0f;
}
""",
        [("draws", "counts", 0)],
    ),
    # A float divisor of 0, which the kernel tests.
    "ratio": (
        """
__global__ void ratio(const float* a, const float* w, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float d = w[i];
    if (d == 0.0f) out[i] = 0.0f;
    else out[i] = a[i] / d;
  }
}
""",
        [("profile", "some-zeros")],
    ),
    # A length that may be 0: no word of a norm.
    "unit": (
        """
__global__ void unit(const float* v, float* u, int n) {
  float acc = 0;
  for (int i = 0; i < n; ++i) { float t = v[blockIdx.x * n + i]; acc += t * t; }
  float r = rsqrtf(acc);
  for (int i = 0; i < n; ++i) u[blockIdx.x * n + i] = v[blockIdx.x * n + i] * r;
}
""",
        [("profile", "zero-rows")],
    ),
    # Beta 0, tested in a helper, by `!= 0`.
    "axpby": (
        """
__device__ float mixed(float a, float b, float beta) { return beta != 0 ? a + beta * b : a; }
__global__ void axpby(const float* x, float* y, float alpha, float beta, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = mixed(alpha * x[i], y[i], beta);
}
""",
        [("number", "beta", 0.0)],
    ),
    # A flag that is false.
    "masked": (
        """
__global__ void masked(const float* x, float* y, int n, bool causal) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = 0;
  for (int j = 0; j < n; ++j) if (!causal || j <= i) s += x[i * n + j];
  y[i] = s;
}
""",
        [("number", "causal", 0.0)],
    ),
    # A rate above 0.
    "faded": (
        """
__global__ void faded(const float* x, float* y, float rate, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = rate > 0.f ? x[i] * (1.f - rate) : x[i];
}
""",
        [("number", "rate", 0.0)],
    ),
    # -1 by a constant's name.
    "gathered": (
        """
constexpr int kNone = -1;
__global__ void gathered(const float* table, const int* where, float* out, int n, int entries) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int at = where[i];
  out[i] = at == kNone ? 0.0f : table[at];
}
""",
        [("draws", "where", -1), ("indices", "where")],
    ),
    # An index below 0, tested by `< 0`.
    "scattered": (
        """
__global__ void scattered(const float* x, const long long* slot, float* cache, int n, int slots, int d) {
  long long s = slot[blockIdx.x];
  if (s < 0) return;
  for (int k = threadIdx.x; k < d; k += blockDim.x) cache[s * d + k] = x[blockIdx.x * d + k];
}
void run(const float* x, const long long* slot, float* cache, int n, int slots, int d) {
  scattered<<<n, 64>>>(x, slot, cache, n, slots, d);
}
""",
        [("draws", "slot", -1), ("indices", "slot")],
    ),
    # A lone exp, with max in another place.
    "gate": (
        """
#include <algorithm>
__global__ void gate(const float* x, float* y, int n) {
  int last = max(n - 1, 0);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= last) { float e = __expf(-x[i]); y[i] = x[i] / (1.f + e); }
}
""",
        [("profile", "steep")],
    ),
    # Sums of exponentials through a helper and a local of another name.
    "weights": (
        """
__device__ float up(float v) { return exp2f(v * 1.4426950f); }
__global__ void weights(const float* x, float* y, int n) {
  float total = 0;
  for (int i = 0; i < n; ++i) {
    float t = up(x[blockIdx.x * n + i]);
    y[blockIdx.x * n + i] = t;
    total += t;
  }
  for (int i = 0; i < n; ++i) y[blockIdx.x * n + i] /= total;
}
""",
        [("profile", "large")],
    ),
    # A maximum by ?:.
    "highest": (
        """
__global__ void highest(const float* x, float* y, int n) {
  float top = 0;
  for (int i = 0; i < n; ++i) { float v = x[blockIdx.x * n + i]; top = v > top ? v : top; }
  y[blockIdx.x] = top;
}
""",
        [("profile", "negative")],
    ),
    # A place, by an if that sets two.
    "where": (
        """
__global__ void where(const float* x, int* y, int n) {
  int best = 0;
  for (int i = 1; i < n; ++i)
    if (!(x[blockIdx.x * n + i] <= x[blockIdx.x * n + best])) best = i;
  y[blockIdx.x] = best;
}
""",
        [("profile", "ties")],
    ),
    # Labels are no values.
    "loss": (
        """
__global__ void loss(const float* logits, const int* target, float* out, int rows, int classes) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  const float* row = logits + (long)r * classes;
  float m = -INFINITY, s = 0;
  for (int c = 0; c < classes; ++c) m = fmaxf(m, row[c]);
  for (int c = 0; c < classes; ++c) s += expf(row[c] - m);
  out[r] = logf(s) + m - row[target[r]];
}
""",
        [("profile", "large"), ("profile", "negative"), ("indices", "target")],
    ),
    # A constant in a root, by its number.
    "rms": (
        """
__global__ void rms(const float* x, float* y, int n) {
  float acc = 0;
  for (int i = 0; i < n; ++i) acc += x[blockIdx.x * n + i] * x[blockIdx.x * n + i];
  float k = rsqrtf(acc / n + 1e-6f);
  for (int i = 0; i < n; ++i) y[blockIdx.x * n + i] = x[blockIdx.x * n + i] * k;
}
""",
        [("profile", "tiny"), ("noprofile", "zero-rows")],
    ),
    # Three tiled sizes of a product.
    "product": (
        """
template <int B> __global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float s[B][B], t[B][B];
  int y = blockIdx.y * B + threadIdx.y, x = blockIdx.x * B + threadIdx.x;
  float acc = 0;
  for (int p = 0; p < (k + B - 1) / B; ++p) {
    int u = p * B + threadIdx.x, v = p * B + threadIdx.y;
    s[threadIdx.y][threadIdx.x] = y < m && u < k ? a[y * k + u] : 0;
    t[threadIdx.y][threadIdx.x] = v < k && x < n ? b[v * n + x] : 0;
    __syncthreads();
    for (int q = 0; q < B; ++q) acc += s[threadIdx.y][q] * t[q][threadIdx.x];
    __syncthreads();
  }
  if (y < m && x < n) c[y * n + x] = acc;
}
void run(const float* a, const float* b, float* c, int m, int n, int k) {
  product<16><<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, c, m, n, k);
}
""",
        [
            ("shape", "k > 3 * 16 and k % 16 != 0"),
            ("shape", "m > 16 and m % 16 != 0"),
            ("shape", "n > 16 and n % 16 != 0"),
            ("noprofile", "offset"),
        ],
    ),
    # A distance is no variance, and a plain product no maximum.
    "distance": (
        """
__global__ void distance(const float* p, const float* q, float* out, int n, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = 0;
  for (int k = 0; k < d; ++k) { float t = p[i * d + k] - q[i * d + k]; s += t * t; }
  out[i] = sqrtf(s);
}
""",
        [
            ("noprofile", "offset"),
            ("noprofile", "negative"),
            ("noprofile", "large"),
            ("noprofile", "zero-rows"),
        ],
    ),
}
