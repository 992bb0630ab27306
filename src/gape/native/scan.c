/* Validate the edges of a batch of small graphs and find out what solvers ask first, in one pass over the edges. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* The finaliser of SplitMix64, as in linalg/integers.py. */
static inline uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Find where the edges of graph `graph` or a later one start, if the edges are stored graph by graph. The
 * answer is a guess where they are not, which the scan itself then finds out. */
static int64_t edges_from(const int64_t *source, int64_t edges, const int64_t *ptr, int64_t graph)
{
    int64_t low = 0, high = edges;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (source[middle] < ptr[graph])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Scan graphs first to last - 1 of a batch.
 *
 * edge_ptr: [graphs + 1], filled from `first` to `last - 1`, and at `graphs` if that is `last`.
 * sorted: [graphs], whether the edges are sorted by source; symmetric: [graphs], whether A = A^T (without weights);
 * most_out, most_in: [graphs], the largest number of edges out of and into a node.
 * Symmetry is tested by Adjacency._same_edge_sums: sum r_u r_v (r_v - r_u) over the edges is 0 modulo 2^64.
 *
 * Returns 1 if an edge is not where it belongs (the edges are not stored graph by graph, or one leaves its graph): then
 * nothing is known; -1 if there is no memory.
 */
int KERNEL(scan)(const int64_t *source, const int64_t *target, int64_t edges, const int64_t *ptr, int64_t graphs,
                 int64_t first, int64_t last, int64_t *edge_ptr, uint8_t *sorted, uint8_t *symmetric, double *most_out,
                 double *most_in)
{
    int64_t most = 0;
    for (int64_t i = first; i < last; i++)
        most = ptr[i + 1] - ptr[i] > most ? ptr[i + 1] - ptr[i] : most;
    uint64_t *r = malloc((most + 1) * (sizeof(uint64_t) + 2 * sizeof(uint32_t)));
    if (r == NULL)
        return -1;
    uint32_t *out = (uint32_t *)(r + most + 1), *in = out + most + 1;
    int64_t end = last == graphs ? edges : edges_from(source, edges, ptr, last);
    int64_t e = first == 0 ? 0 : edges_from(source, edges, ptr, first);
    int wrong = 0;
    for (int64_t i = first; i < last && !wrong; i++) {
        uint64_t low = ptr[i], n = ptr[i + 1] - low, sum = 0;
        for (uint64_t v = 0; v < n; v++)
            r[v] = mix(low + v);
        memset(out, 0, n * sizeof(uint32_t));
        memset(in, 0, n * sizeof(uint32_t));
        edge_ptr[i] = e;
        uint64_t before = 0;
        uint32_t run = 0; /* edges in a row out of node u: all of them if they are sorted */
        int64_t start = e;
        int ordered = 1;
        for (; e < end; e++) {
            uint64_t u = (uint64_t)source[e] - low, v = (uint64_t)target[e] - low;
            if (u >= n)
                break; /* the next graph's edge, or one that is out of place */
            if (v >= n) {
                wrong = 1;
                break;
            }
            /* Without branches: rows are short, and nothing predicts where they end. */
            run = (u == before ? run : 0) + 1;
            ordered &= u >= before;
            before = u;
            out[u] = run;
            in[v]++;
            sum += r[u] * r[v] * (r[v] - r[u]);
        }
        if (!ordered) {
            memset(out, 0, n * sizeof(uint32_t));
            for (int64_t f = start; f < e; f++)
                out[(uint64_t)source[f] - low]++;
        }
        uint32_t out_max = 0, in_max = 0;
        for (uint64_t v = 0; v < n; v++) {
            out_max = out[v] > out_max ? out[v] : out_max;
            in_max = in[v] > in_max ? in[v] : in_max;
        }
        sorted[i] = (uint8_t)ordered;
        symmetric[i] = sum == 0;
        most_out[i] = out_max;
        most_in[i] = in_max;
    }
    if (last == graphs)
        edge_ptr[graphs] = edges;
    free(r);
    return wrong || e != end;
}
