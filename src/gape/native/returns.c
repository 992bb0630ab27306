/* Return probabilities of random walks, the diagonals of W, W^2, ..., W^length with W = D^-1 A, graph by graph.
 *
 * Sparse graphs: x_t = W^t e_v for a few nodes v at a time, the columns of a block. If A is symmetric, so is D W, and
 *     (W^(a+b))_vv = sum_w d_w x_a[w] x_b[w] / d_v,
 * so that half as many steps give all of them. Dense graphs: baby steps and giant steps as in linalg/powers.py, and for
 * symmetric A half of each product.
 * The numbers of a graph do not depend on the other graphs.
 */
#include "small_graphs.h"

/* Four numbers times so many are a block of columns: their sums and those over the rows fit into registers. */
#define MAX_VECTORS 4
/* Weights outside this range are left to the caller, and so are negative ones. */
#define MIN_WEIGHT 0x1p-300
#define MAX_WEIGHT 0x1p300

/* The edges of one graph by source, or by target if it is the transpose. */
typedef struct {
    int64_t *start; /* [nodes + 1] */
    uint16_t *node; /* [edges], the other end */
    double *weight; /* [edges], NULL if all are 1 */
} rows_of_edges;

static rows_of_edges cut_rows(char **at, int64_t nodes, int64_t edges, int weighted)
{
    rows_of_edges r;
    r.start = piece(at, (nodes + 2) * sizeof(int64_t));
    r.node = piece(at, edges * sizeof(uint16_t));
    r.weight = weighted ? piece(at, edges * sizeof(double)) : NULL;
    return r;
}

/* Sort edges given by their ends `row` and `node`, stably by row. */
static void sort_edges(const uint16_t *row, const uint16_t *node, const double *weight, int64_t nodes, int64_t edges,
                       rows_of_edges *out)
{
    int64_t *next = out->start + 1; /* moves on to the start of the next row while edges are put into this one */
    memset(out->start, 0, (nodes + 2) * sizeof(int64_t));
    for (int64_t e = 0; e < edges; e++)
        next[row[e] + 1]++;
    for (int64_t v = 0; v < nodes; v++)
        next[v + 1] += next[v];
    for (int64_t e = 0; e < edges; e++) {
        int64_t place = next[row[e]]++;
        out->node[place] = node[e];
        if (weight)
            out->weight[place] = weight[e];
    }
}

/* The row of each edge. */
static void list_rows(const rows_of_edges *a, int64_t nodes, uint16_t *row)
{
    for (int64_t v = 0; v < nodes; v++)
        for (int64_t e = a->start[v]; e < a->start[v + 1]; e++)
            row[e] = (uint16_t)v;
}

/* Read graph i: its rows with nodes in ascending order, and those of the transpose. */
static void read_rows(const batch *b, int64_t i, uint16_t *source, uint16_t *target, rows_of_edges *a,
                      rows_of_edges *turned)
{
    int64_t start = b->ptr[i], n = b->ptr[i + 1] - start, e0 = b->edge_ptr[i], edges = b->edge_ptr[i + 1] - e0;
    const double *weight = b->weight ? b->weight + e0 : NULL;
    int sorted = 1;
    for (int64_t e = 0; e < edges; e++) {
        source[e] = (uint16_t)(b->source[e0 + e] - start);
        target[e] = (uint16_t)(b->target[e0 + e] - start);
        sorted &= !e || source[e - 1] < source[e] || (source[e - 1] == source[e] && target[e - 1] <= target[e]);
    }
    if (!sorted) { /* by target, and then by source */
        sort_edges(target, source, weight, n, edges, turned);
        list_rows(turned, n, target);
        memcpy(source, turned->node, edges * sizeof(uint16_t));
        weight = turned->weight;
    }
    sort_edges(source, target, weight, n, edges, a);
    list_rows(a, n, source);
    sort_edges(a->node, source, a->weight, n, edges, turned);
}

static inline int valid_weight(double w)
{
    return w == 0.0 || (w >= MIN_WEIGHT && w <= MAX_WEIGHT);
}

/* Add up the weights of each row; 0 if one of them is negative or out of range. */
static int read_degrees(const rows_of_edges *a, int64_t nodes, double *degree, double *inverse)
{
    for (int64_t v = 0; v < nodes; v++) {
        double sum = (double)(a->start[v + 1] - a->start[v]);
        if (a->weight) {
            sum = 0.0;
            for (int64_t e = a->start[v]; e < a->start[v + 1]; e++) {
                if (!valid_weight(a->weight[e]))
                    return 0;
                sum += a->weight[e];
            }
        }
        degree[v] = sum;
        inverse[v] = sum > 0 ? 1.0 / sum : 0.0;
    }
    return 1;
}

/* y = W x for blocks of 4 VECTORS columns, and per column the sums of d x y and d y y over the rows. */
#define STEP(VECTORS) \
    static void step_##VECTORS(const rows_of_edges *a, int64_t nodes, const double *degree, const double *inverse, \
                               const double *x, double *y, double *odd, double *even) \
    { \
        four by_x[VECTORS], by_y[VECTORS]; \
        _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) by_x[j] = by_y[j] = (four){0.0, 0.0, 0.0, 0.0}; \
        for (int64_t u = 0; u < nodes; u++) { \
            four sum[VECTORS]; \
            _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) sum[j] = (four){0.0, 0.0, 0.0, 0.0}; \
            for (int64_t e = a->start[u]; e < a->start[u + 1]; e++) { \
                const four *from = (const four *)(x + (int64_t)a->node[e] * 4 * VECTORS); \
                if (a->weight) { \
                    _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) sum[j] += a->weight[e] * from[j]; \
                } else { \
                    _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) sum[j] += from[j]; \
                } \
            } \
            const four *old = (const four *)(x + u * 4 * VECTORS); \
            four *new = (four *)(y + u * 4 * VECTORS); \
            _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) { \
                four value = sum[j] * inverse[u], weighted = value * degree[u]; \
                new[j] = value; \
                by_x[j] += weighted * old[j]; \
                by_y[j] += weighted * value; \
            } \
        } \
        _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) { \
            ((four *)odd)[j] = by_x[j]; \
            ((four *)even)[j] = by_y[j]; \
        } \
    }
STEP(1)
STEP(2)
STEP(3)
STEP(4)
#undef STEP

typedef void step_function(const rows_of_edges *, int64_t, const double *, const double *, const double *, double *,
                           double *, double *);
static step_function *const steps_by_vectors[] = {step_1, step_2, step_3, step_4};

/* found: [nodes][length]. x, y: [nodes][16]; sums: [length + 1][16]. */
static void walk_columns(const rows_of_edges *a, int64_t nodes, int symmetric, const double *degree,
                         const double *inverse, int64_t length, double *x, double *y, double *sums, double *found)
{
    for (int64_t first = 0; first < nodes; first += 4 * MAX_VECTORS) {
        int64_t left = nodes - first, vectors = left >= 4 * MAX_VECTORS ? MAX_VECTORS : (left + 3) / 4;
        int64_t wide = 4 * vectors, real = left < wide ? left : wide;
        step_function *step = steps_by_vectors[vectors - 1];
        memset(x, 0, nodes * wide * sizeof(double));
        for (int64_t c = 0; c < real; c++)
            x[(first + c) * wide + c] = 1.0;
        for (int64_t t = 1; t <= length; t += symmetric ? 2 : 1) {
            /* In pairs, so that the last even power may be one too many. */
            double *odd = sums + (t - 1) * wide;
            step(a, nodes, degree, inverse, x, y, odd, odd + wide);
            double *swap = x;
            x = y;
            y = swap;
            for (int64_t c = 0; c < real && !symmetric; c++)
                found[(first + c) * length + t - 1] = x[(first + c) * wide + c];
        }
        for (int64_t c = 0; c < real && symmetric; c++)
            for (int64_t t = 0; t < length; t++)
                found[(first + c) * length + t] = sums[t * wide + c] * inverse[first + c];
    }
}

/* out = w^T c, all [nodes][stride]; of a symmetric result half is computed. */
static void multiply(const double *w, const double *c, double *out, int64_t nodes, int64_t stride, int symmetric)
{
    output rows = {out, stride, 0};
    for (int64_t i = 0; i < nodes; i += 4)
        for (int64_t column = symmetric ? i / 8 * 8 : 0; column < stride; column += 8) {
            four_by_eight(w + i, stride, nodes, c + column, stride, NULL, &rows, i, nodes - i, column);
            if (symmetric && column > i)
                for (int64_t j = column; j < column + 8 && j < nodes; j++)
                    for (int64_t k = i; k < i + 4; k++)
                        out[j * stride + k] = out[k * stride + j];
        }
}

static void transpose(const double *from, double *to, int64_t nodes, int64_t stride)
{
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t j = 0; j < stride; j++)
            to[i * stride + j] = j < nodes ? from[j * stride + i] : 0.0;
}

/* The diagonals of x y_p for `count` matrices y_p, from the transpose of x, into columns of `found`. `count` is a constant
 * where this is called, so that all sums stay in registers. */
static inline void add_diagonals(const int count, const double *turned_x, const double *y, int64_t nodes, int64_t stride,
                                 double *found, int64_t length)
{
    for (int64_t first = 0; first < nodes; first += 8) {
        four sum[4][2];
        _Pragma("GCC unroll 4") for (int p = 0; p < count; p++)
            sum[p][0] = sum[p][1] = (four){0.0, 0.0, 0.0, 0.0};
        for (int64_t w = 0; w < nodes; w++) {
            const four *a = (const four *)(turned_x + w * stride + first);
            _Pragma("GCC unroll 4") for (int p = 0; p < count; p++) {
                const four *b = (const four *)(y + (p * nodes + w) * stride + first);
                sum[p][0] += a[0] * b[0];
                sum[p][1] += a[1] * b[1];
            }
        }
        for (int64_t v = first; v < first + 8 && v < nodes; v++)
            for (int p = 0; p < count; p++)
                found[v * length + p] = sum[p][(v - first) / 4][(v - first) % 4];
    }
}

/* Read graph i as the matrix to multiply: D^(-1/2) A D^(-1/2), which has the same diagonals, if A is symmetric, otherwise
 * D^-1 A. Returns whether it is symmetric; -1 if a weight is negative or out of range. */
static int read_matrix(const batch *b, int64_t i, int64_t nodes, int64_t stride, double *matrix, double *scale)
{
    int64_t start = b->ptr[i];
    memset(matrix, 0, nodes * stride * sizeof(double));
    for (int64_t e = b->edge_ptr[i]; e < b->edge_ptr[i + 1]; e++) {
        if (b->weight && !valid_weight(b->weight[e]))
            return -1;
        matrix[(b->source[e] - start) * stride + (b->target[e] - start)] += b->weight ? b->weight[e] : 1.0;
    }
    int symmetric = 1;
    for (int64_t u = 0; u < nodes; u++) {
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (int64_t v = 0; v < nodes; v++)
            sum += matrix[u * stride + v];
        scale[u] = sum > 0 ? 1.0 / sum : 0.0;
        for (int64_t v = 0; v < u && symmetric; v++)
            symmetric = matrix[u * stride + v] == matrix[v * stride + u];
    }
    for (int64_t u = 0; u < nodes && symmetric; u++)
        scale[u] = sqrt(scale[u]);
    for (int64_t u = 0; u < nodes; u++)
        for (int64_t v = 0; v < nodes; v++)
            matrix[u * stride + v] *= symmetric ? scale[u] * scale[v] : scale[u]; /* the same to the last bit */
    return symmetric;
}

/* powers: its first matrix is read, and it has memory for baby + 5 of them, [nodes][stride]. */
static void multiply_out(double *powers, int64_t nodes, int symmetric, int64_t length, int64_t baby, double *found)
{
    int64_t stride = round_up(nodes, 8), size = nodes * stride;
    double *giant = powers + baby * size, *next = giant + size, *turned = next + size;
    double *factor = powers;
    if (!symmetric)
        transpose(powers, factor = turned + size, nodes, stride);
    for (int64_t p = 1; p < baby; p++)
        multiply(factor, powers + (p - 1) * size, powers + p * size, nodes, stride, symmetric);
    for (int64_t p = 0; p < baby; p++)
        for (int64_t v = 0; v < nodes; v++)
            found[v * length + p] = powers[p * size + v * stride + v];
    double *top = factor = powers + (baby - 1) * size;
    if (!symmetric)
        transpose(top, factor = turned + 2 * size, nodes, stride);
    memcpy(giant, top, size * sizeof(double));
    for (int64_t done = baby; done < length; done += baby) {
        double *other = giant;
        if (!symmetric)
            transpose(giant, other = turned, nodes, stride);
        int64_t now = baby < length - done ? baby : length - done, p = 0;
        for (; p + 4 <= now; p += 4)
            add_diagonals(4, other, powers + p * size, nodes, stride, found + done + p, length);
        for (; p < now; p++)
            add_diagonals(1, other, powers + p * size, nodes, stride, found + done + p, length);
        if (done + baby < length) {
            multiply(factor, giant, next, nodes, stride, symmetric);
            double *swap = giant;
            giant = next;
            next = swap;
        }
    }
}

/* Compute the return probabilities of graphs first to last - 1, rows of `length` numbers, with `baby` baby steps.
 *
 * done: [graphs], whether a graph's rows are written: not if it is dense and large, nor with weights that are negative
 * or out of range. Returns 0, NO_MEMORY or EDGE_OUTSIDE.
 */
int KERNEL(returns)(const batch *b, int64_t first, int64_t last, int64_t length, int64_t baby, void *out,
                    int32_t single, uint8_t *done)
{
    int64_t nodes = 0, edges = 0, dense = 0;
    for (int64_t i = first; i < last; i++) {
        int64_t n = b->ptr[i + 1] - b->ptr[i], e = b->edge_ptr[i + 1] - b->edge_ptr[i];
        nodes = n > nodes ? n : nodes;
        edges = e > edges ? e : edges;
        if (n <= MAX_DENSE_NODES && (double)e >= MIN_DENSE_SHARE * (double)n * (double)n && n > dense)
            dense = n;
    }
    int64_t wide = 4 * MAX_VECTORS, stride = round_up(nodes, 8);
    int weighted = b->weight != NULL;
    size_t per_edge = 4 * sizeof(uint16_t) + (weighted ? 2 * sizeof(double) : 0);
    size_t matrix = (size_t)dense * round_up(dense, 8), pieces = 13;
    size_t bytes = edges * per_edge + 2 * (nodes + 2) * sizeof(int64_t) + 64 * pieces +
                   sizeof(double) * ((2 + 2 * wide + length) * stride + (length + 2) * wide + (baby + 5) * matrix);
    char *memory = malloc(bytes), *at = memory;
    if (memory == NULL)
        return NO_MEMORY;
    at += (64 - (uintptr_t)at % 64) % 64;
    uint16_t *source = piece(&at, edges * sizeof(uint16_t)), *target = piece(&at, edges * sizeof(uint16_t));
    rows_of_edges a = cut_rows(&at, nodes, edges, weighted), turned = cut_rows(&at, nodes, edges, weighted);
    double *degree = piece(&at, stride * sizeof(double)), *inverse = piece(&at, stride * sizeof(double));
    double *x = piece(&at, stride * wide * sizeof(double)), *y = piece(&at, stride * wide * sizeof(double));
    double *sums = piece(&at, (length + 2) * wide * sizeof(double));
    double *found = piece(&at, length * stride * sizeof(double)), *matrices = (double *)at;
    int code = 0;
    for (int64_t i = first; i < last; i++) {
        int64_t start = b->ptr[i], n = b->ptr[i + 1] - start, e0 = b->edge_ptr[i], m = b->edge_ptr[i + 1] - e0;
        int is_dense = n > 8 && (double)m >= MIN_DENSE_SHARE * (double)n * (double)n;
        done[i] = 0;
        if (n > MAX_SMALL_NODES || (is_dense && n > MAX_DENSE_NODES))
            continue;
        if (!edges_inside(b, i)) {
            code = EDGE_OUTSIDE;
            break;
        }
        int symmetric = 0;
        if (is_dense) {
            symmetric = read_matrix(b, i, n, round_up(n, 8), matrices, inverse);
            if (symmetric < 0)
                continue;
            multiply_out(matrices, n, symmetric, length, baby, found);
        } else {
            read_rows(b, i, source, target, &a, &turned);
            if (!read_degrees(&a, n, degree, inverse))
                continue;
            symmetric = !memcmp(a.start, turned.start, (n + 1) * sizeof(int64_t)) &&
                        !memcmp(a.node, turned.node, m * sizeof(uint16_t)) &&
                        (!weighted || !memcmp(a.weight, turned.weight, m * sizeof(double)));
            walk_columns(&a, n, symmetric, degree, inverse, length, x, y, sums, found);
        }
        if (single)
            for (int64_t j = 0; j < n * length; j++)
                ((float *)out)[start * length + j] = (float)found[j];
        else
            memcpy((double *)out + start * length, found, n * length * sizeof(double));
        done[i] = 1;
    }
    free(memory);
    return code;
}
