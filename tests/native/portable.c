/* Runs the kernels on three graphs and prints every number they give: compiled for another processor and run under an
 * emulator, it has to print the same as here. See test_portable.py. */
#include <stdio.h>

#define GAPE_VARIANT portable
#include "krylov.c"
#include "pull.c"
#include "returns.c"
#include "scan.c"
#include "series.c"
/* Names that two of the files have. */
#define space directed_space
#define eliminate directed_eliminate
#define coordinates directed_coordinates
#include "arnoldi.c"

#define GRAPHS 3
#define MAX_EDGES 256
#define STATES 6

static const int64_t ptr[GRAPHS + 1] = {0, 7, 12, 24};
static int64_t source[MAX_EDGES], target[MAX_EDGES], edges;

static void join(int64_t u, int64_t v)
{
    source[edges] = u;
    target[edges++] = v;
}

static void print(const char *name, const double *x, int64_t n)
{
    printf("%s", name);
    for (int64_t i = 0; i < n; i++)
        printf(" %.17g", x[i]);
    printf("\n");
}

int main(void)
{
    for (int64_t u = 0; u < 7; u++) { /* a ring */
        join(u, (u + 1) % 7);
        join(u, (u + 6) % 7);
    }
    for (int64_t u = 7; u < 12; u++) { /* a path */
        if (u > 7)
            join(u, u - 1);
        if (u < 11)
            join(u, u + 1);
    }
    for (int64_t u = 12; u < 24; u++) /* a complete graph: dense */
        for (int64_t v = 12; v < 24; v++)
            if (u != v)
                join(u, v);

    int64_t edge_ptr[GRAPHS + 1];
    uint8_t sorted[GRAPHS], symmetric[GRAPHS];
    double most_out[GRAPHS], most_in[GRAPHS];
    printf("scan %d", gape_scan_portable(source, target, edges, ptr, GRAPHS, 0, GRAPHS, edge_ptr, sorted, symmetric,
                                         most_out, most_in));
    for (int i = 0; i < GRAPHS; i++)
        printf(" %d %d %d", (int)edge_ptr[i + 1], sorted[i], symmetric[i]);
    printf("\n");
    print("degrees", most_out, GRAPHS);

    /* A diagonal transition, whose poles are its entries; labels all 0. */
    enum { STRIDE = 8, STEPS = 60 };
    double coefficients[STEPS * STRIDE] = {0}, sizes[STEPS], re[STATES], im[STATES] = {0}, norm = 0.0;
    double g_re[STATES * STRIDE] = {0}, g_im[STATES * STRIDE] = {0}, transition[STATES * STRIDE] = {0};
    double initial[STRIDE] = {0};
    for (int q = 0; q < STATES; q++) {
        re[q] = 0.01 * (q + 1) * (q % 2 ? -1.0 : 1.0);
        initial[q] = 1.0 + q;
        norm += initial[q] * initial[q];
        g_re[q * STRIDE + q] = initial[q];
        transition[q * STRIDE + q] = re[q];
    }
    for (int t = 0; t < STEPS; t++) {
        sizes[t] = 0.0;
        for (int q = 0; q < STATES; q++) {
            coefficients[t * STRIDE + q] = t ? coefficients[(t - 1) * STRIDE + q] * re[q] : initial[q];
            sizes[t] += coefficients[t * STRIDE + q] * coefficients[t * STRIDE + q];
        }
        sizes[t] = sqrt(sizes[t]);
    }
    double rhs_norm[GRAPHS], residual[GRAPHS], growth[GRAPHS], moved[GRAPHS], rows[24 * STATES] = {0};
    for (int i = 0; i < GRAPHS; i++)
        rhs_norm[i] = sqrt(norm * (double)(ptr[i + 1] - ptr[i]));
    batch b = {ptr, edge_ptr, source, target, NULL, NULL, NULL, NULL, 1.0, NULL};
    printf("steps %d\n", gape_series_portable(&b, 0, GRAPHS, NULL, 1, coefficients, STRIDE, sizes, STEPS, rhs_norm,
                                              1e-6, 2, 1, rows, STATES, 0, residual, growth, moved));
    print("series", rows, 24 * STATES);
    print("growth", growth, GRAPHS);

    double radius[GRAPHS], separation[GRAPHS], size[GRAPHS];
    automaton a = {STATES, STATES, STRIDE, 1, re, im, g_re, g_im, transition, initial, 0.06};
    for (int relative = 0; relative < 2; relative++) {
        gape_krylov_portable(&b, 0, GRAPHS, NULL, &a, NULL, 24, most_out, 1, relative ? 1e-13 : 0.0, rhs_norm, 1e-10,
                             rows, 0, residual, radius, separation, size);
        print("krylov", rows, 24 * STATES);
        print("radius", radius, GRAPHS);
        print("separation", separation, GRAPHS);
    }
    gape_radius_portable(&b, 0, GRAPHS, NULL, 24, 1e-13, radius);
    print("radius", radius, GRAPHS);

    double h[GRAPHS * 24 * 24] = {0};
    const int64_t slot[GRAPHS] = {0, 1, 2};
    gape_arnoldi_portable(&b, 0, GRAPHS, NULL, &a, 24, rhs_norm, 1e-10, rows, 0, slot, h, residual, size);
    print("arnoldi", rows, 24 * STATES);

    /* The complete graph as a matrix of 12 rows, times two columns. */
    enum { COLUMNS = 2 };
    int64_t offsets[13];
    int32_t columns[132];
    double x[12 * COLUMNS], y[12 * COLUMNS];
    for (int64_t u = 0, e = 0; u <= 12; u++) {
        offsets[u] = 11 * u;
        for (int32_t v = 0; u < 12 && v < 12; v++)
            if (v != u)
                columns[e++] = v;
    }
    for (int j = 0; j < 12 * COLUMNS; j++)
        x[j] = 1.0 + j;
    for (int64_t m = 1; m <= COLUMNS; m++) {
        gape_pull_f64_portable(0, 12, 12, 132, m, offsets, columns, NULL, x, y);
        print("pull", y, 12 * m);
    }

    enum { LENGTH = 5, BABY = 2 };
    double returns[24 * LENGTH] = {0};
    gape_returns_portable(&b, 0, GRAPHS, LENGTH, BABY, returns, 0, sorted);
    print("returns", returns, 24 * LENGTH);
    return 0;
}
