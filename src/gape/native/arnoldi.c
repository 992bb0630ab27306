/* Galerkin solutions in Krylov spaces by the Arnoldi process, graph by graph: the inner loops of solvers/krylov.py for
 * walk matrices that are not similar to a symmetric one, as those of directed graphs. */
#include "krylov.h"

/* The caller certifies a graph by its separation from the nearest pole, which is not known here: the closer, the smaller
 * the residual has to be, and the larger are the weights. Go on to this share of the tolerance, over their size. */
#define MARGIN 0.1

/* The Krylov space of one label. H is upper Hessenberg; its column j has j + 2 entries, the last of which is the norm
 * of what is left. U is the upper factor of I - lambda H, one number for each pole, real parts before imaginary ones. */
typedef struct {
    double *vectors;       /* [limit + 1][stride] */
    double *h;             /* [limit][limit + 1], column by column */
    double *upper;         /* [limit][limit][2][poles], column by column */
    double *factor, *tail; /* multipliers of the elimination, and L^-1 e_1: [limit + 1][2][poles] */
    double *z;             /* (I - lambda H)^-1 e_1, [limit][2][poles] */
    double *y, *moved;     /* coordinates Y and Y mu, [limit][stride of the automaton] */
    double start, largest; /* norm of the first vector, largest norm of a product */
    double dropped;        /* what is left of the last vector where the space stopped growing */
    int64_t limit, steps;
    int ended, failed;     /* whether the space stopped growing, and whether its numbers are out of range */
} space;

/* One more vector, with full reorthogonalisation. */
static void arnoldi_step(space *s, const small_graph *g, double *along)
{
    int64_t j = s->steps++, stride = g->stride;
    double *h = s->h + j * (s->limit + 1), *w = s->vectors + (j + 1) * stride;
    push(g, s->vectors + j * stride, w);
    double size = sqrt(dot(w, w, stride));
    s->failed |= !in_range(size, w, stride);
    s->largest = size > s->largest ? size : s->largest;
    memset(h, 0, (j + 2) * sizeof(double));
    for (int turn = 0; turn < 3; turn++) {
        double before = size;
        project_out(w, s->vectors, stride, 0, j + 1, along);
        for (int64_t i = 0; i <= j; i++)
            h[i] += along[i];
        size = sqrt(dot(w, w, stride));
        if (size >= REORTHOGONALISE_BELOW * before)
            break;
    }
    s->ended = s->failed || !(size > BREAKDOWN_RATIO * s->largest);
    if (s->ended) {
        s->dropped = s->failed ? 0.0 : size;
        return;
    }
    h[j + 1] = size;
    for (int64_t i = 0; i < stride; i++)
        w[i] /= size;
}

/* r |lambda| |z_J|, the largest over the poles: what is left outside a space of J vectors, by the last tail. */
static double outside_of(const space *s, int64_t poles)
{
    const double *restrict tr = s->tail + s->steps * 2 * poles, *restrict ti = tr + poles;
    double most = 0.0;
    for (int64_t p = 0; p < poles; p++) {
        double left = tr[p] * tr[p] + ti[p] * ti[p];
        most = left > most || left != left ? left : most;
    }
    return sqrt(most);
}

/* Eliminate the newest column of I - lambda H for all poles, without pivoting: the residual tells if that was too
 * inexact. */
static void eliminate(const space *s, const automaton *a)
{
    int64_t poles = a->poles, j = s->steps - 1;
    const double *h = s->h + j * (s->limit + 1);
    double *restrict column = s->upper + j * s->limit * 2 * poles;
    for (int64_t i = 0; i <= j; i++) {
        double *restrict ur = column + i * 2 * poles, *restrict ui = ur + poles;
        double one = i == j;
#pragma omp simd
        for (int64_t p = 0; p < poles; p++) {
            ur[p] = one - h[i] * a->re[p];
            ui[p] = -h[i] * a->im[p];
        }
        if (i == 0)
            continue;
        const double *restrict fr = s->factor + (i - 1) * 2 * poles, *restrict fi = fr + poles;
        const double *restrict vr = ur - 2 * poles, *restrict vi = vr + poles;
#pragma omp simd
        for (int64_t p = 0; p < poles; p++) {
            ur[p] -= fr[p] * vr[p] - fi[p] * vi[p];
            ui[p] -= fr[p] * vi[p] + fi[p] * vr[p];
        }
    }
    const double *restrict pr = column + j * 2 * poles, *restrict pi = pr + poles;
    double *restrict fr = s->factor + j * 2 * poles, *restrict fi = fr + poles;
    double *restrict tr = s->tail + j * 2 * poles, *restrict ti = tr + poles;
    double *restrict next_r = tr + 2 * poles, *restrict next_i = next_r + poles;
    if (j == 0)
        for (int64_t p = 0; p < poles; p++) {
            tr[p] = 1.0;
            ti[p] = 0.0;
        }
    for (int64_t p = 0; p < poles; p++) {
        double scale = -h[j + 1] / (pr[p] * pr[p] + pi[p] * pi[p]);
        fr[p] = (a->re[p] * pr[p] + a->im[p] * pi[p]) * scale;
        fi[p] = (a->im[p] * pr[p] - a->re[p] * pi[p]) * scale;
        next_r[p] = fi[p] * ti[p] - fr[p] * tr[p];
        next_i[p] = -(fi[p] * tr[p] + fr[p] * ti[p]);
    }
}

/* Back substitution: the coordinates Y, Y mu, and the squared norm of the residual of the projected equation. */
static double coordinates(const space *s, const automaton *a, int64_t label, double *restrict row)
{
    int64_t poles = a->poles, stride = a->stride, steps = s->steps;
    memcpy(s->z, s->tail, steps * 2 * poles * sizeof(double));
    for (int64_t j = steps - 1; j >= 0; j--) {
        const double *restrict column = s->upper + j * s->limit * 2 * poles;
        const double *restrict pr = column + j * 2 * poles, *restrict pi = pr + poles;
        double *restrict zr = s->z + j * 2 * poles, *restrict zi = zr + poles;
#pragma omp simd
        for (int64_t p = 0; p < poles; p++) {
            double scale = 1.0 / (pr[p] * pr[p] + pi[p] * pi[p]), re = zr[p];
            zr[p] = (re * pr[p] + zi[p] * pi[p]) * scale;
            zi[p] = (zi[p] * pr[p] - re * pi[p]) * scale;
        }
        for (int64_t i = 0; i < j; i++) {
            const double *restrict ur = column + i * 2 * poles, *restrict ui = ur + poles;
            double *restrict xr = s->z + i * 2 * poles, *restrict xi = xr + poles;
#pragma omp simd
            for (int64_t p = 0; p < poles; p++) {
                xr[p] -= ur[p] * zr[p] - ui[p] * zi[p];
                xi[p] -= ur[p] * zi[p] + ui[p] * zr[p];
            }
        }
    }
    for (int64_t j = 0; j < steps; j++)
        coordinates_of(a, label, s->start, s->z + j * 2 * poles, s->z + (2 * j + 1) * poles, s->y + j * stride,
                       s->moved + j * stride);
    double sum = 0.0;
    for (int64_t i = 0; i < steps; i++) {
        const double *restrict y = s->y + i * stride;
        for (int64_t q = 0; q < stride; q++)
            row[q] = y[q] - (i ? 0.0 : s->start * a->initial[label * stride + q]);
        for (int64_t j = i ? i - 1 : 0; j < steps; j++) {
            double by = s->h[j * (s->limit + 1) + i];
            const double *restrict moved = s->moved + j * stride;
#pragma omp simd
            for (int64_t q = 0; q < stride; q++)
                row[q] -= by * moved[q];
        }
        sum += dot(row, row, stride);
    }
    return sum;
}

/* Solve graphs first to last - 1, of those that are chosen, in spaces of at most `limit` vectors per label.
 *
 * label: as in series.c. slot: [graphs], the place of a chosen graph among them; hessenberg:
 * [places][labels][limit][limit], zero: gets H of each space, row by row.
 *
 * Per graph: the relative residual (infinite if it is larger than the tolerance, and then its rows are not written) and
 * the norm `size` of the weights' coordinates. Returns the largest dimension, NO_MEMORY or EDGE_OUTSIDE.
 */
int KERNEL(arnoldi)(const batch *b, int64_t first, int64_t last, const int64_t *label, const automaton *a,
                    int64_t limit, const double *rhs_norm, double tolerance, void *out, int32_t single,
                    const int64_t *slot, double *hessenberg, double *residual, double *size)
{
    small_graph g;
    if (reserve(&g, b, first, last, 1))
        return NO_MEMORY;
    double *matrix = g.dense;
    int64_t labels = a->labels, column = g.most_nodes, wide = 2 * a->poles;
    size_t rows = (size_t)limit + 1;
    size_t each = rows * (rows + (limit + 3) * wide + a->stride) + 6 * 8;
    size_t doubles = labels * (each + rows * (column + a->stride)) + a->stride + rows + 5 * 8;
    char *memory = malloc(doubles * sizeof(double) + 64);
    space *spaces = malloc(labels * sizeof(space));
    if (memory == NULL || spaces == NULL) {
        free(memory);
        free(spaces);
        free(g.memory);
        return NO_MEMORY;
    }
    char *at = memory + (64 - (uintptr_t)memory % 64) % 64;
    /* The vectors of all labels behind each other, and so the coordinates, so that one product makes the rows. */
    double *all_vectors = piece(&at, labels * rows * column * sizeof(double));
    double *all_y = piece(&at, labels * rows * a->stride * sizeof(double));
    for (int64_t l = 0; l < labels; l++) {
        space *s = spaces + l;
        s->limit = limit;
        s->h = piece(&at, rows * rows * sizeof(double));
        s->upper = piece(&at, limit * limit * wide * sizeof(double));
        s->factor = piece(&at, rows * wide * sizeof(double));
        s->tail = piece(&at, rows * wide * sizeof(double));
        s->z = piece(&at, limit * wide * sizeof(double));
        s->moved = piece(&at, limit * a->stride * sizeof(double));
    }
    double *row = piece(&at, a->stride * sizeof(double)), *along = piece(&at, rows * sizeof(double));
    output weights = {out, a->states, single};
    int most_steps = 0;

    for (int64_t i = first; i < last; i++) {
        if (b->chosen && !b->chosen[i])
            continue;
        residual[i] = size[i] = 0.0;
        if (b->ptr[i + 1] == b->ptr[i])
            continue;
        if (!edges_inside(b, i)) {
            most_steps = EDGE_OUTSIDE;
            break;
        }
        read_graph(&g, b, i, matrix);
        int64_t n = g.nodes, stride = g.stride, most = limit < n ? limit : n, terms = 0;
        double inside = 0.0, outside = 0.0, norms = 0.0;
        for (int64_t l = 0; l < labels; l++) {
            space *s = spaces + l;
            s->vectors = all_vectors + l * rows * stride;
            s->y = all_y + l * rows * a->stride;
            memset(s->vectors, 0, stride * sizeof(double));
            for (int64_t v = 0; v < n; v++)
                if ((label ? label[b->ptr[i] + v] : 0) == l)
                    s->vectors[v] = 1.0;
            s->start = sqrt(dot(s->vectors, s->vectors, stride));
            s->largest = s->dropped = 0.0;
            s->steps = s->failed = 0;
            s->ended = s->start == 0.0;
            for (int64_t v = 0; v < stride && !s->ended; v++)
                s->vectors[v] /= s->start;
        }
        double goal = MARGIN * tolerance;
        for (int turn = 0; turn < 8; turn++, goal *= 0.1) {
            int more = 0, failed = 0;
            inside = outside = norms = 0.0;
            for (int64_t l = 0; l < labels; l++) {
                space *s = spaces + l;
                while (!s->ended && s->steps < most && !(s->steps && outside_of(s, a->poles) <= goal)) {
                    arnoldi_step(s, &g, along);
                    eliminate(s, a);
                }
                more |= !s->ended && s->steps < most;
                failed |= s->failed;
                if (s->steps == 0)
                    continue;
                inside += coordinates(s, a, l, row);
                const double *tail = s->moved + (s->steps - 1) * a->stride;
                outside += (s->h[(s->steps - 1) * (limit + 1) + s->steps] + s->dropped) * sqrt(dot(tail, tail, a->stride));
                norms += dot(s->y, s->y, s->steps * a->stride);
            }
            residual[i] = failed ? INFINITY : rhs_norm[i] > 0.0 ? (sqrt(inside) + outside) / rhs_norm[i] : 0.0;
            size[i] = sqrt(norms);
            double growth = size[i] > rhs_norm[i] ? size[i] / rhs_norm[i] : 1.0;
            if (residual[i] * growth <= MARGIN * tolerance || failed || !more)
                break;
        }
        if (!(residual[i] <= tolerance && isfinite(norms))) {
            residual[i] = INFINITY;
            continue;
        }
        for (int64_t l = 0; l < labels; l++) {
            space *s = spaces + l;
            double *h = hessenberg + (slot[i] * labels + l) * limit * limit;
            for (int64_t j = 0; j < s->steps; j++)
                for (int64_t r = 0; r < s->steps && r < j + 2; r++)
                    h[r * limit + j] = s->h[j * (limit + 1) + r];
            memmove(all_vectors + terms * stride, s->vectors, s->steps * stride * sizeof(double));
            memmove(all_y + terms * a->stride, s->y, s->steps * a->stride * sizeof(double));
            terms += s->steps;
            most_steps = s->steps > most_steps ? (int)s->steps : most_steps;
        }
        write_product(all_vectors, stride, n, terms, all_y, a->stride, NULL, &weights, b->ptr[i]);
    }
    free(memory);
    free(spaces);
    free(g.memory);
    return most_steps;
}
