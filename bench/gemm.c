// The grad-a product as plain C: OpenMP over the elements, one float accumulator, terms in index order;
// and a scalar double-precision oracle loop with the sum of magnitudes that a bound needs.
//   gemm product|oracle [SIZE [REPEATS]]
// prints the best time in seconds. With -DDOUBLE_INPUTS the oracle reads doubles that were converted
// outside the timing.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void product(const _Float16* c, const _Float16* b, _Float16* out, int m, int n, int k) {
#pragma omp parallel for collapse(2)
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < k; ++j) {
            float sum = 0.0f;
            for (int p = 0; p < n; ++p) sum = fmaf((float)c[(size_t)i * n + p], (float)b[(size_t)j * n + p], sum);
            out[(size_t)i * k + j] = (_Float16)sum;
        }
}

#ifdef DOUBLE_INPUTS
typedef double Operand;
#else
typedef _Float16 Operand;
#endif

static void oracle(const Operand* c, const Operand* b, double* out, double* scale, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < k; ++j) {
            double sum = 0, size = 0;
            for (int p = 0; p < n; ++p) {
                const double term = (double)c[(size_t)i * n + p] * (double)b[(size_t)j * n + p];
                sum += term;
                size += fabs(term);
            }
            out[(size_t)i * k + j] = sum;
            scale[(size_t)i * k + j] = size;
        }
}

int main(int argc, char** argv) {
    const int size = argc > 2 ? atoi(argv[2]) : 512;
    const int repeats = argc > 3 ? atoi(argv[3]) : 3;
    const size_t count = (size_t)size * size;
    _Float16 *c = malloc(count * 2), *b = malloc(count * 2), *out = malloc(count * 2);
    Operand *left = malloc(count * sizeof(Operand)), *right = malloc(count * sizeof(Operand));
    double *reference = malloc(count * 8), *scale = malloc(count * 8);
    for (size_t i = 0; i < count; ++i) {
        c[i] = (_Float16)((float)rand() / RAND_MAX - 0.5f);
        b[i] = (_Float16)((float)rand() / RAND_MAX - 0.5f);
        left[i] = (Operand)c[i];
        right[i] = (Operand)b[i];
    }
    double best = 1e9;
    for (int r = 0; r < repeats; ++r) {
        const double start = now();
        if (argc > 1 && argv[1][0] == 'o') oracle(left, right, reference, scale, size, size, size);
        else product(c, b, out, size, size, size);
        const double seconds = now() - start;
        if (seconds < best) best = seconds;
    }
    volatile double sink = reference[count / 2] + (double)out[count / 2];
    (void)sink;
    printf("%.9f\n", best);
    return 0;
}
