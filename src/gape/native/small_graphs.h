/* One small graph of a batch at a time, in cache: its edges with 16-bit node numbers, and products with its walk matrix.
 *
 * Walk matrices have the form M = diag(d) + s diag(l) A diag(r), as in graph/walk_matrix.py.
 */
#ifndef GAPE_SMALL_GRAPHS_H
#define GAPE_SMALL_GRAPHS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define MAX_SMALL_NODES 65535

/* The same fields in the same order as `Batch` in graph/small_graphs.py. NULL: no such vector. */
typedef struct {
    const int64_t *ptr, *edge_ptr;   /* node and edge offsets, [graphs + 1] */
    const int64_t *source, *target;  /* [edges], graph by graph */
    const double *weight;            /* [edges] */
    const double *left, *right, *diagonal; /* l, r, d: [nodes] */
    double sign;                     /* s */
    const uint8_t *chosen;           /* [graphs]: the graphs to work on */
} batch;

/* One graph. A product takes one multiplication and one addition per edge, or per pair of nodes if `dense` is set. */
typedef struct {
    int64_t nodes, edges, stride;
    uint16_t *source, *target;
    const double *weight, *left, *right, *diagonal;
    double sign;
    double *dense; /* row u: the weights of u's edges by target, [nodes][stride] */
    double *scaled;
    int64_t most_nodes, most_edges;
    void *memory;
} small_graph;

/* Memory is cut from one block in pieces of whole cache lines. */
static inline void *piece(char **from, size_t bytes)
{
    void *start = *from;
    *from += (bytes + 63) / 64 * 64;
    return start;
}

static inline int64_t round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* Graphs with at least this share of all pairs as edges get a dense matrix, up to this size (half of a usual L2). */
#define MIN_DENSE_SHARE 0.15
#define MAX_DENSE_NODES 256

static inline int reserve(small_graph *g, const batch *b, int64_t first, int64_t last, int allow_dense)
{
    int64_t nodes = 0, edges = 0, dense = 0;
    for (int64_t i = first; i < last; i++) {
        int64_t n = b->ptr[i + 1] - b->ptr[i], e = b->edge_ptr[i + 1] - b->edge_ptr[i];
        nodes = n > nodes ? n : nodes;
        edges = e > edges ? e : edges;
        if (allow_dense && n <= MAX_DENSE_NODES && n > dense)
            dense = n;
    }
    g->most_nodes = round_up(nodes, 8);
    g->most_edges = edges;
    size_t matrix = (size_t)dense * round_up(dense, 8) * sizeof(double);
    size_t bytes = 2 * (edges * sizeof(uint16_t) + 64) + g->most_nodes * sizeof(double) + matrix + 5 * 64;
    char *at = g->memory = malloc(bytes);
    if (at == NULL)
        return -1;
    at += (64 - (uintptr_t)at % 64) % 64;
    g->source = piece(&at, edges * sizeof(uint16_t));
    g->target = piece(&at, edges * sizeof(uint16_t));
    g->scaled = piece(&at, g->most_nodes * sizeof(double));
    g->dense = matrix ? (double *)at : NULL;
    return 0;
}

/* What a kernel returns instead of a count. */
#define NO_MEMORY (-1)
#define EDGE_OUTSIDE (-2)

/* Whether the edges of graph i are still within it: the tensor may have been changed since it was scanned. */
static inline int edges_inside(const batch *b, int64_t i)
{
    int64_t start = b->ptr[i];
    uint64_t n = (uint64_t)(b->ptr[i + 1] - start), outside = 0;
#pragma omp simd reduction(| : outside)
    for (int64_t e = b->edge_ptr[i]; e < b->edge_ptr[i + 1]; e++)
        outside |= (uint64_t)((uint64_t)(b->source[e] - start) >= n) | ((uint64_t)(b->target[e] - start) >= n);
    return !outside;
}

/* Read graph i; `matrix` is the memory for a dense one. */
static inline void read_graph(small_graph *g, const batch *b, int64_t i, double *matrix)
{
    int64_t start = b->ptr[i], e0 = b->edge_ptr[i];
    int64_t n = g->nodes = b->ptr[i + 1] - start, edges = g->edges = b->edge_ptr[i + 1] - e0;
    g->weight = b->weight ? b->weight + e0 : NULL;
    g->left = b->left ? b->left + start : NULL;
    g->right = b->right ? b->right + start : NULL;
    g->diagonal = b->diagonal ? b->diagonal + start : NULL;
    g->sign = b->sign;
    g->stride = round_up(n, 8);
    const int64_t *source = b->source + e0, *target = b->target + e0;
    if (matrix && n <= MAX_DENSE_NODES && (double)edges >= MIN_DENSE_SHARE * (double)n * (double)n && n > 8) {
        g->dense = matrix;
        memset(matrix, 0, (size_t)n * g->stride * sizeof(double));
        for (int64_t e = 0; e < edges; e++)
            matrix[(source[e] - start) * g->stride + (target[e] - start)] += g->weight ? g->weight[e] : 1.0;
        return;
    }
    g->dense = NULL;
    for (int64_t e = 0; e < edges; e++) {
        g->source[e] = (uint16_t)(source[e] - start);
        g->target[e] = (uint16_t)(target[e] - start);
    }
}

/* y += A^T x. Both have room for `stride` numbers, and x has zeros beyond its nodes. */
static void add_edges(const small_graph *g, const double *restrict x, double *restrict y)
{
    const uint16_t *restrict source = g->source, *restrict target = g->target;
    int64_t edges = g->edges, n = g->nodes;
    if (g->dense) {
        int64_t stride = g->stride, u = 0;
        for (; u + 4 <= n; u += 4) {
            const double *restrict a = g->dense + u * stride;
            double x0 = x[u], x1 = x[u + 1], x2 = x[u + 2], x3 = x[u + 3];
#pragma omp simd
            for (int64_t v = 0; v < stride; v++)
                y[v] += (x0 * a[v] + x1 * a[v + stride]) + (x2 * a[v + 2 * stride] + x3 * a[v + 3 * stride]);
        }
        for (; u < n; u++) {
            const double *restrict a = g->dense + u * stride;
            double x0 = x[u];
#pragma omp simd
            for (int64_t v = 0; v < stride; v++)
                y[v] += x0 * a[v];
        }
    } else if (g->weight) {
        for (int64_t e = 0; e < edges; e++)
            y[target[e]] += g->weight[e] * x[source[e]];
    } else {
        for (int64_t e = 0; e < edges; e++)
            y[target[e]] += x[source[e]];
    }
}

/* y = M^T x. */
static inline void push(const small_graph *g, const double *restrict x, double *restrict y)
{
    int64_t n = g->nodes;
    memset(y, 0, g->stride * sizeof(double));
    if (g->left) {
        for (int64_t v = 0; v < n; v++)
            g->scaled[v] = g->left[v] * x[v];
        add_edges(g, g->scaled, y);
    } else {
        add_edges(g, x, y);
    }
    if (g->right)
        for (int64_t v = 0; v < n; v++)
            y[v] *= g->right[v];
    if (g->sign < 0)
        for (int64_t v = 0; v < n; v++)
            y[v] = -y[v];
    if (g->diagonal)
        for (int64_t v = 0; v < n; v++)
            y[v] += g->diagonal[v] * x[v];
}

/* Where the encodings go: rows of k numbers, float or double. */
typedef struct {
    void *start;
    int64_t k;
    int32_t single;
} output;

/* Four numbers at a time, whatever the instruction set: compilers split the vector if registers are shorter. */
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
typedef float four_single __attribute__((vector_size(16), aligned(4), may_alias));

static inline void store(const output *out, int64_t at, four x, int64_t wide)
{
    if (wide >= 4) {
        if (out->single)
            *(four_single *)((float *)out->start + at) = __builtin_convertvector(x, four_single);
        else
            *(four *)((double *)out->start + at) = x;
        return;
    }
    for (int64_t j = 0; j < wide; j++)
        if (out->single)
            ((float *)out->start)[at + j] = (float)x[j];
        else
            ((double *)out->start)[at + j] = x[j];
}

/* ROWS nodes times 4 VECTORS columns of W^T C, in registers: eight sums hide the latency of a multiply-add. Stores as
 * many of the rows as the graph has. */
#define BLOCK(name, ROWS, VECTORS) \
    static inline void name(const double *w, int64_t w_stride, int64_t terms, const double *c, int64_t c_stride, \
                            const double *scale, const output *out, int64_t node, int64_t nodes, int64_t column) \
    { \
        four sum[ROWS][VECTORS]; \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++) \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) sum[i][j] = (four){0.0, 0.0, 0.0, 0.0}; \
        for (int64_t t = 0; t < terms; t++, w += w_stride, c += c_stride) \
            _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++) \
                _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) \
                    sum[i][j] += w[i] * *(const four *)(c + 4 * j); \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++) { \
            if (i == nodes) \
                break; \
            double by = scale ? scale[i] : 1.0; \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++) \
                store(out, (node + i) * out->k + column + 4 * j, sum[i][j] * by, out->k - column - 4 * j); \
        } \
    }
BLOCK(four_by_eight, 4, 2)
BLOCK(eight_by_four, 8, 1)
#undef BLOCK

/* Write diag(scale) W^T C for the nodes of a graph that starts at `node`.
 *
 * w: [terms][w_stride] with w_stride a multiple of 8 and at least `nodes`, c: [terms][c_stride] with c_stride a multiple
 * of 4 and at least k; scale: [nodes] or NULL.
 */
static inline void write_product(const double *w, int64_t w_stride, int64_t nodes, int64_t terms, const double *c,
                                 int64_t c_stride, const double *scale, const output *out, int64_t node)
{
    int64_t wide = c_stride / 8 * 8;
    for (int64_t i = 0; i < nodes; i += 4)
        for (int64_t column = 0; column < wide; column += 8)
            four_by_eight(w + i, w_stride, terms, c + column, c_stride, scale ? scale + i : NULL, out, node + i,
                          nodes - i, column);
    for (int64_t i = 0; wide < c_stride && i < nodes; i += 8)
        eight_by_four(w + i, w_stride, terms, c + wide, c_stride, scale ? scale + i : NULL, out, node + i, nodes - i,
                      wide);
}

#endif
