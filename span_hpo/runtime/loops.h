/* What the compiled loops share.

SPAN_HPO_CLONES compiles a function twice, for any processor and for those with AVX2, and the
loader takes the better one. glibc can do that; elsewhere there is one version. */

#ifndef SPAN_HPO_LOOPS_H
#define SPAN_HPO_LOOPS_H

#include <limits.h> /* defines __GLIBC__ where the C library is glibc */
#include <math.h>
#include <stddef.h>

#if defined(__GNUC__) && defined(__x86_64__) && defined(__GLIBC__)
#define SPAN_HPO_CLONES __attribute__((unused, target_clones("avx2", "default")))
#elif defined(__GNUC__)
#define SPAN_HPO_CLONES __attribute__((unused))
#else
#define SPAN_HPO_CLONES
#endif

#define SPAN_HPO_LANES 32

/* Return the largest of n numbers, none of which counts if it is NaN. */
static SPAN_HPO_CLONES double span_hpo_largest(const double *x, ptrdiff_t n)
{
    /* Maxima that need not wait for each other become vectors. */
    double top[SPAN_HPO_LANES];
    ptrdiff_t t, lane, whole = n / SPAN_HPO_LANES * SPAN_HPO_LANES;
    double largest = -INFINITY;
    if (whole) {
        for (lane = 0; lane < SPAN_HPO_LANES; lane++)
            top[lane] = -INFINITY;
        for (t = 0; t < whole; t += SPAN_HPO_LANES)
            for (lane = 0; lane < SPAN_HPO_LANES; lane++)
                top[lane] = x[t + lane] > top[lane] ? x[t + lane] : top[lane];
        for (lane = 0; lane < SPAN_HPO_LANES; lane++)
            largest = top[lane] > largest ? top[lane] : largest;
    }
    for (t = whole; t < n; t++)
        largest = x[t] > largest ? x[t] : largest;
    return largest;
}

#endif
