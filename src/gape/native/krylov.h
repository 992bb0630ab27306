/* What the kernels of Krylov spaces share: the automaton they solve for, and orthogonal projections. */
#ifndef GAPE_KRYLOV_H
#define GAPE_KRYLOV_H

#include "small_graphs.h"

/* As in solvers/krylov.py. */
#define BREAKDOWN_RATIO 1e-13
#define REORTHOGONALISE_BELOW 0.7

/* The automaton, diagonalised: the solution for the right-hand side e_1 of label a is the sum over the poles lambda of
 * (I - lambda H)^-1 e_1 g_a, real parts only; of two conjugate poles only one is here, and counts twice in g. */
typedef struct {
    int64_t poles, states, stride, labels;
    const double *re, *im;     /* lambda, [poles] */
    const double *g_re, *g_im; /* [labels][poles][stride] */
    const double *transition;  /* [states][stride], columns beyond `states` are 0 */
    const double *initial;     /* [labels][stride] */
    double radius;             /* largest absolute eigenvalue */
} automaton;

static inline double dot(const double *restrict x, const double *restrict y, int64_t n)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t v = 0; v < n; v++)
        sum += x[v] * y[v];
    return sum;
}

/* Whether the square of a norm has its digits, or the vector is zero. Other vectors are left to the caller. */
static inline int in_range(double norm, const double *w, int64_t n)
{
    if (norm > 0x1p-330 && norm < 0x1p330)
        return 1;
    for (int64_t v = 0; v < n; v++)
        if (w[v] != 0.0)
            return 0;
    return 1;
}

/* w -= sum_j <v_j, w> v_j for the vectors from `first` on; returns the part along the last. */
static inline double project_out(double *restrict w, const double *restrict vectors, int64_t stride, int64_t first,
                                 int64_t count, double *restrict along)
{
    for (int64_t j = first; j < count; j++)
        along[j] = dot(w, vectors + j * stride, stride);
    for (int64_t j = first; j < count; j++) {
        const double *restrict v = vectors + j * stride;
        double by = along[j];
#pragma omp simd
        for (int64_t i = 0; i < stride; i++)
            w[i] -= by * v[i];
    }
    return along[count - 1];
}

/* Coordinates along one vector, y = start Re sum_p z_p g_p, and y mu. */
static inline void coordinates_of(const automaton *a, int64_t label, double start, const double *zr, const double *zi,
                                  double *restrict y, double *restrict moved)
{
    int64_t poles = a->poles, stride = a->stride;
    memset(y, 0, stride * sizeof(double));
    for (int64_t p = 0; p < poles; p++) {
        const double *restrict gr = a->g_re + (label * poles + p) * stride;
        const double *restrict gi = a->g_im + (label * poles + p) * stride;
        double x = start * zr[p], z = start * zi[p];
#pragma omp simd
        for (int64_t q = 0; q < stride; q++)
            y[q] += x * gr[q] - z * gi[q];
    }
    memset(moved, 0, stride * sizeof(double));
    for (int64_t p = 0; p < a->states; p++) {
        const double *restrict mu = a->transition + p * stride;
        double x = y[p];
#pragma omp simd
        for (int64_t q = 0; q < stride; q++)
            moved[q] += x * mu[q];
    }
}

#endif
