/* The sum over runs by length, X = sum_t W_t C_t, graph by graph: the inner loop of solvers/series.py. */
#include "small_graphs.h"

/* Counts outside this range are left to the caller, who rescales them. */
#define MIN_COUNT 0x1p-300
#define MAX_COUNT 0x1p300

static inline double largest_of(const double *restrict x, int64_t n)
{
    double largest = 0.0;
#pragma omp simd reduction(max : largest)
    for (int64_t v = 0; v < n; v++) {
        double size = fabs(x[v]);
        largest = size > largest ? size : largest;
    }
    return largest;
}

static inline double norm_of(const double *restrict x, int64_t n)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t v = 0; v < n; v++)
        sum += x[v] * x[v];
    return sqrt(sum);
}

/* Add up the runs of graphs first to last - 1, of those that are chosen.
 *
 * label: [nodes], the column of each node's label or -1; NULL if all nodes have label 0.
 * coefficients: [steps][labels][c_stride], C_t; sizes: [steps], their 2-norms.
 * rhs_norm: [graphs]; a graph is done after `in_a_row` terms of at most `tolerance` times that.
 * counts: whether the columns together count walks, so that their growth bounds the spectral radius.
 *
 * Per graph: residual (infinite if it is not done, and then its rows are not written), the bound `growth` of the
 * spectral radius (infinite if there is none) and `moved`, the sum of max|W_t| |C_t| over all terms.
 * Returns the largest number of terms, NO_MEMORY or EDGE_OUTSIDE.
 */
int KERNEL(series)(const batch *b, int64_t first, int64_t last, const int64_t *label, int64_t labels,
                   const double *coefficients, int64_t c_stride, const double *sizes, int64_t steps,
                   const double *rhs_norm, double tolerance, int64_t in_a_row, int32_t counts, void *out, int64_t k,
                   int32_t single, double *residual, double *growth, double *moved)
{
    small_graph g;
    if (reserve(&g, b, first, last, 1))
        return NO_MEMORY;
    double *matrix = g.dense;
    size_t column = (size_t)g.most_nodes, bytes = (steps * labels + 1) * column * sizeof(double) + 64;
    char *memory = malloc(bytes), *at = memory;
    if (memory == NULL) {
        free(g.memory);
        return NO_MEMORY;
    }
    at += (64 - (uintptr_t)at % 64) % 64;
    output rows = {out, k, single};
    int most_steps = 0;
    for (int64_t i = first; i < last; i++) {
        if (b->chosen && !b->chosen[i])
            continue;
        if (!edges_inside(b, i)) {
            most_steps = EDGE_OUTSIDE;
            break;
        }
        read_graph(&g, b, i, matrix);
        int64_t n = g.nodes, stride = g.stride, row = labels * stride, done = 0, small = 0, t = 0;
        double *w = (double *)at;
        memset(w, 0, row * sizeof(double));
        for (int64_t v = 0; v < n; v++) {
            int64_t own = label ? label[b->ptr[i] + v] : 0;
            if (own >= 0)
                w[own * stride + v] = 1.0;
        }
        double largest = n > 0, total = 0.0, scale = rhs_norm[i] > 0 ? 1.0 / rhs_norm[i] : 0.0, rest = INFINITY;
        while (t + 1 < steps && !done) {
            total += largest * sizes[t];
            for (int64_t a = 0; a < labels; a++)
                push(&g, w + t * row + a * stride, w + (t + 1) * row + a * stride);
            t++;
            largest = largest_of(w + t * row, row);
            if (!(largest == 0.0 || (largest > MIN_COUNT && largest < MAX_COUNT)))
                break;
            /* The norm is no smaller than the largest entry, which mostly tells that there is more to add. */
            double left = largest * sizes[t] * scale;
            if (left <= tolerance)
                left = norm_of(w + t * row, row) * sizes[t] * scale;
            small = left <= tolerance ? small + 1 : 0;
            done = largest == 0.0 || small >= in_a_row;
            rest = done ? left : INFINITY;
        }
        residual[i] = rest;
        moved[i] = total;
        growth[i] = INFINITY;
        if (!done)
            continue;
        if (counts) {
            double most = 0.0;
            for (int64_t v = 0; v < n; v++) {
                double sum = 0.0;
                for (int64_t a = 0; a < labels; a++)
                    sum += w[t * row + a * stride + v];
                most = sum > most ? sum : most;
            }
            growth[i] = pow(most, 1.0 / (double)t);
        }
        most_steps = t > most_steps ? (int)t : most_steps;
        write_product(w, stride, n, t * labels, coefficients, c_stride, NULL, &rows, b->ptr[i]);
    }
    free(memory);
    free(g.memory);
    return most_steps;
}
