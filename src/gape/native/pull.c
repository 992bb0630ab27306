/* Products of a CSR matrix with a few dense columns, for one large graph.
 *
 * y[v] = sum over the entries e of row v of weights[e] * x[columns[e]], for the rows first .. last - 1. Rows are
 * independent: threads and processes call it for ranges with equally many entries. offsets and columns are those of the
 * whole matrix, y starts at row first, and weights is NULL if all of them are 1. x has `nodes` rows, and x and y have m
 * columns. Sums are in double precision and in the order of the entries, so they depend on no thread and no range.
 * Returns 1 if a column is not below `nodes` or an offset not among the `edges`, as in a damaged file, otherwise 0.
 */
#include "kernel.h"

/* Entries ahead of the sum whose x is fetched: x is larger than the cache, and rows are shorter than its latency. */
#define AHEAD 32
#define CACHE_LINE 64

/* WIDTH columns of row v from column `from` on; the first of them fetch the rows of x that come soon. */
#define TILE(WIDTH) \
    do { \
        double sum[WIDTH] = {0.0}; \
        for (int64_t e = offsets[v]; e < stop; e++) { \
            if (from == 0 && e < end) \
                for (int64_t at = 0; at < bytes; at += CACHE_LINE) \
                    __builtin_prefetch((const char *)(x + (int64_t)columns[e + AHEAD] * m) + at); \
            if ((uint64_t)(int64_t)columns[e] >= (uint64_t)nodes) \
                return 1; \
            const double weight = weights ? weights[e] : 1.0; \
            for (int j = 0; j < WIDTH; j++) \
                sum[j] += weight * (double)x[columns[e] * m + from + j]; \
        } \
        for (int j = 0; j < WIDTH; j++) \
            y[(v - first) * m + from + j] = sum[j]; \
        from += WIDTH; \
    } while (0)

/* One column, without the address arithmetic of several. */
#define ONE_COLUMN() \
    do { \
        double sum = 0.0; \
        for (int64_t e = offsets[v]; e < stop; e++) { \
            if (e < end) \
                __builtin_prefetch(x + columns[e + AHEAD]); \
            const uint32_t u = (uint32_t)columns[e]; \
            if (u >= rows) \
                return 1; \
            sum += weights ? weights[e] * (double)x[u] : (double)x[u]; \
        } \
        y[v - first] = sum; \
    } while (0)

#define DEFINE_PULL(name, number) \
    int KERNEL(name)(int64_t first, int64_t last, int64_t nodes, int64_t edges, int64_t m, \
                     const int64_t *offsets, const int32_t *columns, const double *weights, const number *x, number *y) \
    { \
        const int64_t end = edges - AHEAD, bytes = m * (int64_t)sizeof(number); \
        const uint32_t rows = (uint32_t)nodes; \
        for (int64_t v = first; v < last; v++) { \
            const int64_t stop = offsets[v + 1]; \
            int64_t from = 0; \
            if (offsets[v] < 0 || offsets[v] > stop || stop > edges) \
                return 1; \
            if (m == 1) { \
                ONE_COLUMN(); \
                continue; \
            } \
            while (m - from >= 8) \
                TILE(8); \
            if (m - from >= 4) \
                TILE(4); \
            if (m - from >= 2) \
                TILE(2); \
            if (m - from == 1) \
                TILE(1); \
        } \
        return 0; \
    }

DEFINE_PULL(pull_f64, double)
DEFINE_PULL(pull_f32, float)
