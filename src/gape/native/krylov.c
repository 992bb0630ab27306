/* Galerkin solutions in Krylov spaces by the Lanczos process, graph by graph: the inner loops of solvers/krylov.py for
 * walk matrices that are symmetric, or similar to a symmetric one. */
#include "krylov.h"

/* As in solvers/krylov.py and solvers/certificate.py. */
#define EXCITED_RATIO 1e-10
#define SINGULAR_GAP 1e-10
/* Graphs whose equation is closer to a singular one are left to the caller. */
#define MIN_SEPARATION 1e-6

/* The Krylov space of one label. */
typedef struct {
    double *vectors;       /* [limit + 1][stride] */
    double *alpha, *beta;  /* H: diagonal and off-diagonal, [limit]; the last beta is the remainder */
    double *pivot, *tail;  /* Gaussian elimination of I - lambda H, [limit][2][poles] */
    double *y, *moved;     /* coordinates Y and Y mu, [limit][stride of the automaton] */
    double start, largest; /* norm of the first vector, largest norm of a product */
    double factor;         /* on the walk matrix */
    int64_t steps, built;  /* dimension in use, and dimension that is known */
    int64_t ended, whole;  /* whether the space in use, and the one that is known, stopped growing */
    int64_t failed;        /* whether its numbers are out of range */
    double dropped;        /* what is left of the last vector where the space stopped growing */
} space;

/* w = diag(1/c) M^T diag(c) v; c may be NULL. */
static inline void apply(const small_graph *g, const double *c, const double *restrict v, double *restrict w,
                         double *restrict spare)
{
    if (c == NULL) {
        push(g, v, w);
        return;
    }
    for (int64_t i = 0; i < g->nodes; i++)
        spare[i] = c[i] * v[i];
    push(g, spare, w);
    for (int64_t i = 0; i < g->nodes; i++)
        w[i] /= c[i];
}

/* One more vector: a known one, or by a step of Lanczos with full reorthogonalisation. */
static void lanczos_step(space *s, const small_graph *g, const double *c, double *along, double *spare)
{
    int64_t j = s->steps++, stride = g->stride;
    if (j == s->built) {
        double *w = s->vectors + (j + 1) * stride;
        apply(g, c, s->vectors + j * stride, w, spare);
        double before = sqrt(dot(w, w, stride));
        s->failed |= !in_range(before, w, stride);
        s->largest = before > s->largest ? before : s->largest;
        /* The three-term recurrence, then all vectors: after that as often as much of w cancels. */
        double alpha = project_out(w, s->vectors, stride, j ? j - 1 : 0, j + 1, along);
        double size = sqrt(dot(w, w, stride));
        for (int turn = 0; turn < 3; turn++) {
            before = size;
            alpha += project_out(w, s->vectors, stride, 0, j + 1, along);
            size = sqrt(dot(w, w, stride));
            if (size >= REORTHOGONALISE_BELOW * before)
                break;
        }
        s->whole = s->failed || !(size > BREAKDOWN_RATIO * s->largest);
        s->alpha[j] = s->factor * alpha;
        s->beta[j] = s->whole ? 0.0 : s->factor * size;
        s->dropped = s->whole && !s->failed ? s->factor * size : 0.0;
        s->built = j + 1;
        if (!s->whole)
            for (int64_t i = 0; i < stride; i++)
                w[i] /= size;
    }
    s->ended = s->whole && s->steps == s->built;
}

/* The space of a vector, with which it begins: nothing is known of it yet. */
static void start_space(space *s, int64_t stride)
{
    s->start = sqrt(dot(s->vectors, s->vectors, stride));
    s->factor = 1.0;
    s->largest = 0.0;
    s->steps = s->built = 0;
    s->failed = 0;
    s->dropped = 0.0;
    s->ended = s->whole = s->start == 0.0;
    for (int64_t v = 0; v < stride && !s->ended; v++)
        s->vectors[v] /= s->start;
}

/* Eliminate row j of I - lambda H for all poles; returns r |lambda| |y_J|, the largest over the poles. */
static double eliminate(const space *s, const automaton *a, int64_t j)
{
    int64_t poles = a->poles;
    double *restrict pr = s->pivot + 2 * j * poles, *restrict pi = pr + poles;
    double *restrict tr = s->tail + 2 * j * poles, *restrict ti = tr + poles;
    double alpha = s->alpha[j], rest = s->beta[j], most = 0.0;
    if (j == 0) {
        for (int64_t p = 0; p < poles; p++) {
            pr[p] = 1.0 - alpha * a->re[p];
            pi[p] = -alpha * a->im[p];
            tr[p] = 1.0;
            ti[p] = 0.0;
        }
    } else {
        const double *restrict qr = pr - 2 * poles, *restrict qi = qr + poles;
        const double *restrict ur = tr - 2 * poles, *restrict ui = ur + poles;
        double beta = s->beta[j - 1];
#pragma omp simd
        for (int64_t p = 0; p < poles; p++) {
            double or_ = beta * a->re[p], oi = beta * a->im[p];
            double scale = 1.0 / (qr[p] * qr[p] + qi[p] * qi[p]);
            double rr = (or_ * qr[p] + oi * qi[p]) * scale, ri = (oi * qr[p] - or_ * qi[p]) * scale;
            pr[p] = 1.0 - alpha * a->re[p] - (or_ * rr - oi * ri);
            pi[p] = -alpha * a->im[p] - (or_ * ri + oi * rr);
            tr[p] = ur[p] * rr - ui[p] * ri;
            ti[p] = ur[p] * ri + ui[p] * rr;
        }
    }
    for (int64_t p = 0; p < poles; p++) {
        double size = (a->re[p] * a->re[p] + a->im[p] * a->im[p]) * (tr[p] * tr[p] + ti[p] * ti[p]);
        double left = size / (pr[p] * pr[p] + pi[p] * pi[p]);
        most = left > most || left != left ? left : most;
    }
    return rest * sqrt(most);
}

/* Back substitution: the coordinates Y, Y mu, and the norm of the residual of the projected equation. */
static double coordinates(const space *s, const automaton *a, int64_t label, double *restrict zr, double *restrict zi,
                          double *restrict row)
{
    int64_t poles = a->poles, stride = a->stride, steps = s->steps;
    for (int64_t j = steps - 1; j >= 0; j--) {
        const double *restrict pr = s->pivot + 2 * j * poles, *restrict pi = pr + poles;
        const double *restrict tr = s->tail + 2 * j * poles, *restrict ti = tr + poles;
        double beta = j < steps - 1 ? s->beta[j] : 0.0;
#pragma omp simd
        for (int64_t p = 0; p < poles; p++) {
            double nr = tr[p] + beta * (a->re[p] * zr[p] - a->im[p] * zi[p]);
            double ni = ti[p] + beta * (a->re[p] * zi[p] + a->im[p] * zr[p]);
            double scale = 1.0 / (pr[p] * pr[p] + pi[p] * pi[p]);
            zr[p] = (nr * pr[p] + ni * pi[p]) * scale;
            zi[p] = (ni * pr[p] - nr * pi[p]) * scale;
        }
        coordinates_of(a, label, s->start, zr, zi, s->y + j * stride, s->moved + j * stride);
    }
    double sum = 0.0;
    for (int64_t j = 0; j < steps; j++) {
        const double *restrict y = s->y + j * stride, *restrict moved = s->moved + j * stride;
        for (int64_t q = 0; q < stride; q++)
            row[q] = y[q] - s->alpha[j] * moved[q] - (j ? 0.0 : s->start * a->initial[label * stride + q]);
        if (j)
            for (int64_t q = 0; q < stride; q++)
                row[q] -= s->beta[j - 1] * moved[q - stride];
        if (j + 1 < steps)
            for (int64_t q = 0; q < stride; q++)
                row[q] -= s->beta[j] * moved[q + stride];
        sum += dot(row, row, stride);
    }
    return sum;
}

/* Eigenvalues d of a symmetric tridiagonal matrix (diagonal d, off-diagonal e) and the first entries q of its
 * eigenvectors, by the implicit QL algorithm (Golub & Welsch, 1969). Returns 1 if it does not converge. */
static int ritz_values(double *d, double *e, double *q, int64_t n)
{
    memset(q, 0, n * sizeof(double));
    q[0] = 1.0;
    e[n - 1] = 0.0;
    for (int64_t l = 0; l < n; l++)
        for (int turn = 0;; turn++) {
            int64_t m = l, i;
            while (m < n - 1 && fabs(e[m]) > 0x1p-53 * (fabs(d[m]) + fabs(d[m + 1])))
                m++;
            if (m == l)
                break;
            if (turn == 50)
                return 1;
            double g = (d[l + 1] - d[l]) / (2.0 * e[l]), r = sqrt(g * g + 1.0);
            g = d[m] - d[l] + e[l] / (g + (g < 0 ? -r : r));
            double s = 1.0, c = 1.0, p = 0.0;
            for (i = m - 1; i >= l; i--) {
                double f = s * e[i], b = c * e[i];
                r = sqrt(f * f + g * g);
                e[i + 1] = r;
                if (r == 0.0) {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                f = q[i + 1];
                q[i + 1] = s * q[i] + c * f;
                q[i] = c * q[i] - s * f;
            }
            if (r == 0.0 && i >= l)
                continue;
            d[l] -= p;
            e[l] = g;
            e[m] = 0.0;
        }
    return 0;
}

/* The largest eigenvalue of sign H, H of the first n vectors, by Laguerre's method on the characteristic polynomial,
 * which is monotone from the right of all roots. *last: the last entry of its eigenvector, *first: its first, each if
 * it is not NULL. */
static double end_of_spectrum(const space *s, int64_t n, double sign, double *first, double *last)
{
    double x = sign * s->alpha[0], left = 0.0;
    for (int64_t j = 0; j < n; j++) {
        double right = j < n - 1 ? s->beta[j] : 0.0, bound = sign * s->alpha[j] + left + right;
        x = bound > x ? bound : x;
        left = right;
    }
    for (int turn = 0; turn < 100; turn++) {
        /* Pivots of x - sign H and two derivatives; G = sum 1 / (x - theta), K = sum 1 / (x - theta)^2. */
        double pivot = 0.0, d1 = 0.0, d2 = 0.0, g = 0.0, k = 0.0;
        int64_t j = 0;
        for (; j < n; j++) {
            double square = j ? s->beta[j - 1] * s->beta[j - 1] : 0.0, inverse = j ? 1.0 / pivot : 0.0;
            double share = square * inverse * inverse;
            d2 = share * (d2 - 2.0 * d1 * d1 * inverse);
            d1 = 1.0 + share * d1;
            pivot = x - sign * s->alpha[j] - square * inverse;
            if (!(pivot > 0.0))
                break; /* no longer to the right of the root: rounding lets us go no further */
            double ratio = d1 / pivot;
            g += ratio;
            k += ratio * ratio - d2 / pivot;
        }
        if (j < n)
            break;
        double root = (double)(n - 1) * ((double)n * k - g * g);
        double step = (double)n / (g + sqrt(root > 0.0 ? root : 0.0));
        x -= step;
        if (!(step > 0x1p-52 * fabs(x)))
            break;
    }
    /* The eigenvector decreases from its first entry on. Bottom-up recurrences give ratios of neighbours without loss:
     * downwards the growing solution takes over once the entries are below 1e-8. */
    double pivot = x - sign * s->alpha[n - 1], slope = 1.0, sum = 1.0, entry = 1.0;
    for (int64_t j = n - 2; j >= 0; j--) {
        double share = s->beta[j] / pivot;
        slope = 1.0 + share * share * slope;
        if (sum < 0x1p600) {
            entry *= pivot / s->beta[j];
            sum += entry * entry;
        }
        pivot = x - sign * s->alpha[j] - share * s->beta[j];
    }
    if (first)
        *first = 1.0 / sqrt(slope);
    if (last)
        *last = 1.0 / sqrt(sum);
    return sign * x;
}

/* How near is a pole? The least |1 - lambda theta|^2 over the poles lambda and the Ritz values theta that the first
 * vector excites, at least `excited` in size; *top gets the largest |theta| if it is larger.
 * d, e, q: memory for all Ritz values, which are needed only where one between the two ends may be the nearest. */
static double separation_of(const space *s, const automaton *a, double excited, double *top, double *d, double *e,
                            double *q)
{
    double first[2], ends[2], nearest = INFINITY, inside = INFINITY;
    for (int end = 0; end < 2; end++) {
        ends[end] = end_of_spectrum(s, s->steps, end ? -1.0 : 1.0, first + end, NULL);
        *top = fabs(ends[end]) > *top ? fabs(ends[end]) : *top;
    }
    for (int64_t p = 0; p < a->poles; p++) {
        double size = a->re[p] * a->re[p] + a->im[p] * a->im[p];
        for (int end = 0; end < 2; end++) {
            double re = 1.0 - ends[end] * a->re[p], im = ends[end] * a->im[p], gap = re * re + im * im;
            nearest = gap < nearest || gap != gap ? gap : nearest;
        }
        if (a->re[p] < size * ends[0] && a->re[p] > size * ends[1])
            inside = fmin(inside, a->im[p] * a->im[p] / size);
    }
    if (inside > nearest && s->start * fmin(first[0], first[1]) > excited)
        return nearest;
    memcpy(d, s->alpha, s->steps * sizeof(double));
    memcpy(e, s->beta, s->steps * sizeof(double));
    nearest = ritz_values(d, e, q, s->steps) ? 0.0 : INFINITY;
    for (int64_t j = 0; j < s->steps; j++) {
        if (!(s->start * fabs(q[j]) > excited))
            continue;
        for (int64_t p = 0; p < a->poles; p++) {
            double re = 1.0 - d[j] * a->re[p], im = d[j] * a->im[p], gap = re * re + im * im;
            nearest = gap < nearest || gap != gap ? gap : nearest;
        }
    }
    return nearest;
}

/* Steps of the Lanczos process between two looks at its largest Ritz value. */
#define STEPS_PER_LOOK 8

/* Build the space up to where its largest Ritz value is the spectral radius of M >= 0, if the space is that of the
 * vector of ones, to which no nonnegative eigenvector is orthogonal. The residual of the Ritz pair, a bound of the
 * error, is then at most `tolerance` times the value. NaN if `most` vectors do not bring it there. */
static double find_radius(space *s, const small_graph *g, const double *c, int64_t most, double tolerance,
                          double *along, double *spare)
{
    double top = 0.0, rest = INFINITY, last = 0.0;
    while (!(rest <= tolerance * top) && !s->ended && s->steps < most) {
        for (int look = 0; look < STEPS_PER_LOOK && !s->ended && s->steps < most; look++)
            lanczos_step(s, g, c, along, spare);
        top = end_of_spectrum(s, s->steps, 1.0, NULL, &last);
        rest = s->steps == g->nodes ? 0.0 : s->beta[s->steps - 1] * last;
    }
    return rest <= tolerance * top && !s->failed ? top : NAN;
}

/* Add |c V q| to x, q the eigenvector of H for its largest eigenvalue theta: two steps of inverse iteration. */
static void add_top_vector(const space *s, const small_graph *g, double theta, double *restrict x,
                           double *restrict pivot, double *restrict q, double *restrict spare)
{
    int64_t n = s->built, stride = g->stride;
    double shift = theta * (1.0 + 1e-14) + 1e-300;
    for (int64_t j = 0; j < n; j++) {
        pivot[j] = shift - s->alpha[j] - (j ? s->beta[j - 1] * s->beta[j - 1] / pivot[j - 1] : 0.0);
        if (fabs(pivot[j]) < 1e-15 * shift)
            pivot[j] = 1e-15 * shift;
        q[j] = j ? 0.0 : 1.0;
    }
    for (int turn = 0; turn < 3; turn++) {
        for (int64_t j = 1; j < n; j++)
            q[j] += s->beta[j - 1] * q[j - 1] / pivot[j - 1];
        q[n - 1] /= pivot[n - 1];
        for (int64_t j = n - 2; j >= 0; j--)
            q[j] = (q[j] + s->beta[j] * q[j + 1]) / pivot[j];
        double size = sqrt(dot(q, q, n));
        for (int64_t j = 0; j < n; j++)
            q[j] /= size;
    }
    memset(spare, 0, stride * sizeof(double));
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < stride; i++)
            spare[i] += q[j] * s->vectors[j * stride + i];
    for (int64_t i = 0; i < g->nodes; i++)
        x[i] += fabs(spare[i]);
}

/* max (M^T x)_v / x_v over the nodes with edges: an upper bound of the spectral radius if M >= 0 (Collatz, 1942). */
static double collatz(const small_graph *g, const double *x, double *y, double *degree, double *ones)
{
    double most = 0.0;
    push(g, x, y);
    for (int64_t v = 0; v < g->nodes; v++)
        ones[v] = 1.0;
    push(g, ones, degree);
    for (int64_t v = 0; v < g->nodes; v++)
        if (degree[v] != 0.0) {
            double ratio = x[v] > 0.0 ? y[v] / x[v] : INFINITY;
            most = ratio > most ? ratio : most;
        }
    return most;
}

/* Solve graphs first to last - 1, of those that are chosen, in spaces of at most `limit` vectors per label.
 *
 * scale: [nodes], c with diag(1/c) M^T diag(c) symmetric; NULL for ones. label: as in series.c.
 * norm: [graphs], an upper bound of each spectral radius; nonnegative: whether M >= 0.
 * precision: if it is not 0, M is divided by its spectral radius, found in the same space to that relative precision;
 * for one label on all nodes and M >= 0. A graph without edges stays as it is.
 *
 * Per graph: the relative residual (infinite if the graph is not certified, and then its rows are not written), the
 * largest Ritz value `radius`, the `separation` of the excited Ritz values from the poles, and the norm `size` of the
 * weights' coordinates. A graph whose radius times that of the automaton is below 1 is certified only if a norm or
 * Collatz's bound proves it. Returns the largest dimension, NO_MEMORY or EDGE_OUTSIDE.
 */
int KERNEL(krylov)(const batch *b, int64_t first, int64_t last, const int64_t *label, const automaton *a,
                   const double *scale, int64_t limit, const double *norm, int32_t nonnegative, double precision,
                   const double *rhs_norm, double tolerance, void *out, int32_t single, double *residual, double *radius, double *separation,
                   double *size)
{
    small_graph g;
    if (reserve(&g, b, first, last, 1))
        return NO_MEMORY;
    double *matrix = g.dense;
    int64_t labels = a->labels, column = g.most_nodes, most_poles = round_up(a->poles, 8);
    limit = limit < column ? limit : column;
    size_t each = (size_t)(limit + 1) * (column + 2 + 4 * a->poles + 2 * a->stride) + 64;
    size_t doubles = labels * each + 4 * column + 2 * most_poles + a->stride + 4 * (limit + 8) + 64;
    char *memory = malloc(doubles * sizeof(double) + (20 + 8 * labels) * 64);
    space *spaces = malloc(labels * sizeof(space));
    if (memory == NULL || spaces == NULL) {
        free(memory);
        free(spaces);
        free(g.memory);
        return NO_MEMORY;
    }
    char *at = memory + (64 - (uintptr_t)memory % 64) % 64;
    /* The vectors of all labels behind each other, and so the coordinates, so that one product makes the rows. */
    double *all_vectors = piece(&at, labels * (limit + 1) * column * sizeof(double));
    double *all_y = piece(&at, labels * (limit + 1) * a->stride * sizeof(double));
    for (int64_t l = 0; l < labels; l++) {
        spaces[l].moved = piece(&at, (limit + 1) * a->stride * sizeof(double));
        spaces[l].alpha = piece(&at, (limit + 1) * sizeof(double));
        spaces[l].beta = piece(&at, (limit + 1) * sizeof(double));
        spaces[l].pivot = piece(&at, (limit + 1) * 2 * a->poles * sizeof(double));
        spaces[l].tail = piece(&at, (limit + 1) * 2 * a->poles * sizeof(double));
    }
    double *x = piece(&at, column * sizeof(double)), *y = piece(&at, column * sizeof(double));
    double *spare = piece(&at, column * sizeof(double)), *extra = piece(&at, column * sizeof(double));
    double *zr = piece(&at, most_poles * sizeof(double)), *zi = piece(&at, most_poles * sizeof(double));
    double *row = piece(&at, a->stride * sizeof(double));
    double *d = piece(&at, (limit + 1) * sizeof(double)), *e = piece(&at, (limit + 1) * sizeof(double));
    double *q = piece(&at, (limit + 1) * sizeof(double)), *along = piece(&at, (limit + 1) * sizeof(double));
    output rows = {out, a->states, single};
    int most_steps = 0;

    for (int64_t i = first; i < last; i++) {
        if (b->chosen && !b->chosen[i])
            continue;
        int empty = b->ptr[i + 1] == b->ptr[i];
        residual[i] = empty ? 0.0 : INFINITY;
        radius[i] = size[i] = separation[i] = 0.0;
        if (empty)
            continue;
        if (!edges_inside(b, i)) {
            most_steps = EDGE_OUTSIDE;
            break;
        }
        read_graph(&g, b, i, matrix);
        int64_t n = g.nodes, stride = g.stride, most = limit < n ? limit : n;
        const double *c = scale ? scale + b->ptr[i] : NULL;
        double largest_c = 1.0, total = 0.0;
        for (int64_t v = 0; c && v < n; v++)
            largest_c = c[v] > largest_c ? c[v] : largest_c;
        for (int64_t l = 0; l < labels; l++) {
            space *s = spaces + l;
            s->vectors = all_vectors + l * (limit + 1) * stride;
            s->y = all_y + l * (limit + 1) * a->stride;
            memset(s->vectors, 0, stride * sizeof(double));
            for (int64_t v = 0; v < n; v++)
                if ((label ? label[b->ptr[i] + v] : 0) == l)
                    s->vectors[v] = c ? 1.0 / c[v] : 1.0;
            start_space(s, stride);
            total += s->start * s->start;
        }
        double factor = 1.0, goal = tolerance, found = INFINITY, nearest = INFINITY, top = 0.0, norms = 0.0;
        const double excited = EXCITED_RATIO * sqrt(total);
        if (precision != 0.0) {
            double rho = find_radius(spaces, &g, c, most, precision, along, spare);
            if (!(rho >= 0.0))
                continue;
            spaces->factor = factor = rho > 0.0 ? 1.0 / rho : 1.0;
            spaces->dropped *= factor;
            for (int64_t j = 0; j < spaces->built; j++) {
                spaces->alpha[j] *= factor;
                spaces->beta[j] *= factor;
            }
            /* The whole space tells more than the part of it that will be used. */
            nearest = sqrt(separation_of(spaces, a, excited, &top, d, e, q));
            goal *= nearest < 1.0 ? nearest : 1.0;
            spaces->steps = spaces->ended = 0;
        }
        for (int turn = 0; turn < 8; turn++, goal *= 0.1) {
            int more = 0, failed = 0;
            double inside = 0.0, outside = 0.0;
            norms = 0.0;
            for (int64_t l = 0; l < labels; l++) {
                space *s = spaces + l;
                double left = s->steps && !s->ended ? eliminate(s, a, s->steps - 1) : INFINITY;
                while (!s->ended && s->steps < most && !(left <= goal)) {
                    lanczos_step(s, &g, c, along, spare);
                    left = eliminate(s, a, s->steps - 1);
                }
                more |= !s->ended && s->steps < most;
                failed |= (int)s->failed;
                if (s->steps == 0)
                    continue;
                memset(zr, 0, a->poles * sizeof(double));
                memset(zi, 0, a->poles * sizeof(double));
                inside += coordinates(s, a, l, zr, zi, row);
                const double *tail = s->moved + (s->steps - 1) * a->stride;
                outside += (s->beta[s->steps - 1] + (s->ended ? s->dropped : 0.0)) * sqrt(dot(tail, tail, a->stride));
                norms += dot(s->y, s->y, s->steps * a->stride);
            }
            found = failed ? INFINITY : rhs_norm[i] > 0.0 ? largest_c * (sqrt(inside) + outside) / rhs_norm[i] : 0.0;
            if (found <= tolerance && precision == 0.0) {
                /* The nearer a pole, the smaller the residual has to be. */
                nearest = INFINITY;
                top = 0.0;
                for (int64_t l = 0; l < labels; l++) {
                    if (spaces[l].steps == 0)
                        continue;
                    double gap = separation_of(spaces + l, a, excited, &top, d, e, q);
                    nearest = gap < nearest || gap != gap ? gap : nearest;
                }
                nearest = sqrt(nearest);
            }
            if (failed || !(nearest >= MIN_SEPARATION) || found <= tolerance * (nearest < 1.0 ? nearest : 1.0) || !more)
                break;
        }
        int fine = found <= tolerance && nearest >= MIN_SEPARATION && isfinite(norms);
        if (fine && a->radius * factor * norm[i] >= 1.0 - SINGULAR_GAP && a->radius * top < 1.0 - SINGULAR_GAP) {
            fine = 0;
            if (nonnegative) {
                memset(x, 0, stride * sizeof(double));
                for (int64_t l = 0; l < labels; l++)
                    if (spaces[l].steps)
                        add_top_vector(spaces + l, &g, top, x, d, q, spare);
                for (int64_t v = 0; c && v < n; v++)
                    x[v] *= c[v];
                fine = a->radius * factor * collatz(&g, x, y, extra, spare) < 1.0 - SINGULAR_GAP;
            }
        }
        if (!fine)
            continue;
        int64_t terms = 0;
        for (int64_t l = 0; l < labels; l++) {
            space *s = spaces + l;
            memmove(all_vectors + terms * stride, s->vectors, s->steps * stride * sizeof(double));
            memmove(all_y + terms * a->stride, s->y, s->steps * a->stride * sizeof(double));
            terms += s->steps;
            most_steps = s->steps > most_steps ? (int)s->steps : most_steps;
        }
        write_product(all_vectors, stride, n, terms, all_y, a->stride, c, &rows, b->ptr[i]);
        residual[i] = found;
        radius[i] = top;
        separation[i] = nearest < 1.0 ? nearest : 1.0;
        size[i] = largest_c * sqrt(norms);
    }
    free(memory);
    free(spaces);
    free(g.memory);
    return most_steps;
}

/* The spectral radius of M >= 0 for graphs first to last - 1, of those that are chosen, by find_radius in spaces of at
 * most `limit` vectors; NaN where it fails. scale: as above. Returns 0, NO_MEMORY or EDGE_OUTSIDE.
 */
int KERNEL(radius)(const batch *b, int64_t first, int64_t last, const double *scale, int64_t limit, double tolerance,
                   double *radius)
{
    small_graph g;
    if (reserve(&g, b, first, last, 1))
        return NO_MEMORY;
    double *matrix = g.dense;
    int64_t column = g.most_nodes;
    limit = limit < column ? limit : column;
    char *memory = malloc(((size_t)(limit + 1) * (column + 6) + column) * sizeof(double) + 10 * 64);
    if (memory == NULL) {
        free(g.memory);
        return NO_MEMORY;
    }
    char *at = memory + (64 - (uintptr_t)memory % 64) % 64;
    space s;
    s.vectors = piece(&at, (limit + 1) * column * sizeof(double));
    s.alpha = piece(&at, (limit + 1) * sizeof(double));
    s.beta = piece(&at, (limit + 1) * sizeof(double));
    double *along = piece(&at, (limit + 1) * sizeof(double)), *spare = piece(&at, column * sizeof(double));
    int code = 0;
    for (int64_t i = first; i < last; i++) {
        if (b->chosen && !b->chosen[i])
            continue;
        radius[i] = 0.0;
        if (b->ptr[i + 1] == b->ptr[i])
            continue;
        if (!edges_inside(b, i)) {
            code = EDGE_OUTSIDE;
            break;
        }
        read_graph(&g, b, i, matrix);
        int64_t n = g.nodes, most = limit < n ? limit : n;
        const double *c = scale ? scale + b->ptr[i] : NULL;
        memset(s.vectors, 0, g.stride * sizeof(double));
        for (int64_t v = 0; v < n; v++)
            s.vectors[v] = c ? 1.0 / c[v] : 1.0;
        start_space(&s, g.stride);
        radius[i] = find_radius(&s, &g, c, most, tolerance, along, spare);
    }
    free(memory);
    free(g.memory);
    return code;
}
