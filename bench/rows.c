// The forward passes of the ops on rows as plain C: OpenMP over the rows, float16 in memory, single
// precision in between, expf of libm.
//   rows softmax|layernorm ROWS COLS REPEATS
//   rows embedding QUERIES DIM REPEATS VOCAB
// prints the best time in seconds.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void softmax(const _Float16* in, _Float16* out, int rows, int cols) {
#pragma omp parallel for
    for (int i = 0; i < rows; ++i) {
        const _Float16* x = in + (size_t)i * cols;
        _Float16* y = out + (size_t)i * cols;
        float largest = -INFINITY, sum = 0.0f;
        for (int j = 0; j < cols; ++j) largest = fmaxf(largest, (float)x[j]);
        for (int j = 0; j < cols; ++j) sum += expf((float)x[j] - largest);
        for (int j = 0; j < cols; ++j) y[j] = (_Float16)(expf((float)x[j] - largest) / sum);
    }
}

static void layernorm(const _Float16* in, const _Float16* gamma, const _Float16* beta, _Float16* out,
                      float* mean, float* rstd, int rows, int cols) {
#pragma omp parallel for
    for (int i = 0; i < rows; ++i) {
        const _Float16* x = in + (size_t)i * cols;
        _Float16* y = out + (size_t)i * cols;
        float sum = 0.0f, squares = 0.0f;
        for (int j = 0; j < cols; ++j) sum += (float)x[j];
        const float middle = sum / cols;
        for (int j = 0; j < cols; ++j) {
            const float difference = (float)x[j] - middle;
            squares += difference * difference;
        }
        const float scale = 1.0f / sqrtf(squares / cols + 1e-5f);
        mean[i] = middle;
        rstd[i] = scale;
        for (int j = 0; j < cols; ++j)
            y[j] = (_Float16)(((float)x[j] - middle) * scale * (float)gamma[j] + (float)beta[j]);
    }
}

static void embedding(const int* indices, const _Float16* weight, _Float16* out, int queries, int dim,
                      int vocab) {
#pragma omp parallel for
    for (int i = 0; i < queries; ++i) {
        const int row = indices[i];
        if (row < 0 || row >= vocab) continue;
        for (int j = 0; j < dim; ++j) out[(size_t)i * dim + j] = weight[(size_t)row * dim + j];
    }
}

static _Float16* drawn(size_t count) {
    _Float16* values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; ++i) values[i] = (_Float16)(4.0f * rand() / RAND_MAX - 2.0f);
    return values;
}

int main(int argc, char** argv) {
    if (argc < 5) return 2;
    const char* op = argv[1];
    const int rows = atoi(argv[2]), cols = atoi(argv[3]), repeats = atoi(argv[4]);
    const int vocab = argc > 5 ? atoi(argv[5]) : rows;
    const size_t count = (size_t)rows * cols;
    const _Float16 *x = drawn((size_t)vocab * cols), *gamma = drawn(cols), *beta = drawn(cols);
    _Float16* out = drawn(count);
    float *mean = calloc(rows, sizeof *mean), *rstd = calloc(rows, sizeof *rstd);
    int* indices = malloc(rows * sizeof *indices);
    for (int i = 0; i < rows; ++i) indices[i] = rand() % vocab;
    double best = 1e9;
    for (int r = 0; r < repeats; ++r) {
        const double start = now();
        if (!strcmp(op, "softmax")) softmax(x, out, rows, cols);
        else if (!strcmp(op, "layernorm")) layernorm(x, gamma, beta, out, mean, rstd, rows, cols);
        else embedding(indices, x, out, rows, cols, vocab);
        const double seconds = now() - start;
        if (seconds < best) best = seconds;
    }
    volatile float sink = (float)out[count / 2] + mean[rows / 2] + rstd[rows / 2];
    (void)sink;
    printf("%.9f\n", best);
    return 0;
}
