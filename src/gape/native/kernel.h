/* What every kernel file includes.
 *
 * A kernel is a plain C99 function on data pointers: no Python, no torch. It is compiled once per instruction set, and
 * KERNEL(name) gives it that set's name as suffix; Python calls the one that fits the machine. Kernels neither allocate
 * what they return nor start threads: the caller passes memory and calls them from several threads, each for a range
 * of graphs.
 */
#ifndef GAPE_KERNEL_H
#define GAPE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define GAPE_EXPORT __declspec(dllexport)
#else
#define GAPE_EXPORT __attribute__((visibility("default")))
#endif

#define GAPE_PASTE(a, b) a##_##b
#define GAPE_NAME(a, b) GAPE_PASTE(a, b)
#define KERNEL(name) GAPE_EXPORT GAPE_NAME(gape_##name, GAPE_VARIANT)

#endif
