/* Products of a CSR matrix with a few dense columns, for one large graph.
 *
 * y[v] = sum over the entries e of row v of weights[e] * x[columns[e]], for the rows first .. last - 1. Rows are
 * independent: threads and processes call it for ranges with equally many entries. offsets and columns are those of the
 * whole matrix, y starts at row first, and weights is NULL if all of them are 1. x and y have m columns. Sums are in
 * double precision and in the order of the entries, so they depend on no thread and no range.
 */
#include "kernel.h"

/* Entries ahead of the sum whose x is fetched: x is larger than the cache, and rows are shorter than its latency. */
#define AHEAD 32
/* Columns summed at a time. */
#define TILE 8

#define DEFINE_PULL(name, number)                                                                                      \
    static void name##_one(int64_t first, int64_t last, const int64_t *offsets, const int32_t *columns,                \
                           const double *weights, const number *x, number *y)                                          \
    {                                                                                                                  \
        const int64_t end = offsets[last] - AHEAD;                                                                     \
        int64_t e = offsets[first];                                                                                    \
        for (int64_t v = first; v < last; v++) {                                                                       \
            const int64_t stop = offsets[v + 1];                                                                       \
            double sum = 0.0;                                                                                          \
            for (; e < stop; e++) {                                                                                    \
                if (e < end)                                                                                           \
                    __builtin_prefetch(x + columns[e + AHEAD]);                                                        \
                sum += weights ? weights[e] * (double)x[columns[e]] : (double)x[columns[e]];                           \
            }                                                                                                          \
            y[v - first] = (number)sum;                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    int KERNEL(name)(int64_t first, int64_t last, int64_t m, const int64_t *offsets, const int32_t *columns,           \
                     const double *weights, const number *x, number *y)                                                \
    {                                                                                                                  \
        if (m == 1) {                                                                                                  \
            name##_one(first, last, offsets, columns, weights, x, y);                                                  \
            return 0;                                                                                                  \
        }                                                                                                              \
        for (int64_t v = first; v < last; v++)                                                                         \
            for (int64_t from = 0; from < m; from += TILE) {                                                           \
                const int64_t width = m - from < TILE ? m - from : TILE;                                               \
                double sum[TILE] = {0.0};                                                                              \
                for (int64_t e = offsets[v]; e < offsets[v + 1]; e++) {                                                \
                    const number *row = x + (int64_t)columns[e] * m + from;                                            \
                    const double weight = weights ? weights[e] : 1.0;                                                  \
                    for (int64_t j = 0; j < width; j++)                                                                \
                        sum[j] += weight * (double)row[j];                                                             \
                }                                                                                                      \
                for (int64_t j = 0; j < width; j++)                                                                    \
                    y[(v - first) * m + from + j] = (number)sum[j];                                                    \
            }                                                                                                          \
        return 0;                                                                                                      \
    }

DEFINE_PULL(pull_f64, double)
DEFINE_PULL(pull_f32, float)
