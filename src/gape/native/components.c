/* Strongly connected components of one large graph (Tarjan, 1972; without recursion, low links only as in Pearce, 2016).
 *
 * component[v] gets the number of v's component. The other arrays have one entry per node and need not be set; they are
 * all the memory that is used. Returns the number of components, or -1 if a column is not below `nodes` or an offset not
 * among the `edges`, as in a damaged file.
 */
#include "kernel.h"

int KERNEL(components)(int64_t nodes, int64_t edges, const int64_t *offsets, const int32_t *columns, int32_t *component,
                       int32_t *low, int32_t *own, int32_t *stack, int32_t *calls, int64_t *cursor)
{
    int32_t count = 0, index = 0;
    int64_t open = 0;
    for (int64_t v = 0; v < nodes; v++) {
        if (offsets[v] < 0 || offsets[v] > offsets[v + 1] || offsets[v + 1] > edges)
            return -1;
        component[v] = -1;
        low[v] = 0;
    }
    for (int64_t root = 0; root < nodes; root++) {
        int64_t depth = 0;
        if (low[root])
            continue;
        calls[0] = (int32_t)root;
        cursor[0] = offsets[root];
        own[0] = low[root] = ++index;
        stack[open++] = (int32_t)root;
        while (depth >= 0) {
            const int32_t v = calls[depth];
            if (cursor[depth] < offsets[v + 1]) {
                const int32_t w = columns[cursor[depth]++];
                if ((uint64_t)(int64_t)w >= (uint64_t)nodes)
                    return -1;
                if (!low[w]) {
                    depth++;
                    calls[depth] = w;
                    cursor[depth] = offsets[w];
                    own[depth] = low[w] = ++index;
                    stack[open++] = w;
                } else if (component[w] < 0 && low[w] < low[v]) {
                    low[v] = low[w];
                }
                continue;
            }
            if (low[v] == own[depth]) {
                int32_t w;
                do {
                    w = stack[--open];
                    component[w] = count;
                } while (w != v);
                count++;
            } else if (low[v] < low[calls[depth - 1]]) {
                low[calls[depth - 1]] = low[v];
            }
            depth--;
        }
    }
    return count;
}
