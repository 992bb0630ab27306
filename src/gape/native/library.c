/* What Python asks of the library when it loads it. */
#include "kernel.h"

/* The instruction set to use on this machine: the suffix of the kernels. */
GAPE_EXPORT const char *gape_variant(void)
{
#ifdef GAPE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "avx2";
#endif
    return "baseline";
}

/* A hash of the sources it was built from. */
GAPE_EXPORT const char *gape_sources(void)
{
    return GAPE_SOURCES;
}
