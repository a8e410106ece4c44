/* Sums of products with twice the digits, in an order that suits vector instructions. */

#ifndef SPAN_HPO_SUMS_H
#define SPAN_HPO_SUMS_H

#include "loops.h"

#define SPAN_HPO_PARTS 8
#define SPAN_HPO_SPLITTER 134217729.0 /* 2^27 + 1, as in `accurate` */

/* Return the sum of the products of two vectors, the second of which is also given in halves, as if
 * it were computed with twice the digits. Sums that need not wait for each other become vectors. */
static SPAN_HPO_CLONES double span_hpo_accurate_dot(
    ptrdiff_t n, const double *a, const double *x, const double *x_high, const double *x_low)
{
    double total[SPAN_HPO_PARTS], error[SPAN_HPO_PARTS], sum, virtual;
    ptrdiff_t t = 0;
    int k;
    for (k = 0; k < SPAN_HPO_PARTS; k++)
        total[k] = error[k] = 0.0;
    for (; t + SPAN_HPO_PARTS <= n; t += SPAN_HPO_PARTS)
        for (k = 0; k < SPAN_HPO_PARTS; k++) {
            double product = a[t + k] * x[t + k], spread = SPAN_HPO_SPLITTER * a[t + k];
            double high = spread - (spread - a[t + k]), low = a[t + k] - high;
            double lost = high * x_high[t + k] - product + high * x_low[t + k]
                + low * x_high[t + k] + low * x_low[t + k];
            double next = total[k] + product, back = next - total[k];
            error[k] += lost + ((total[k] - (next - back)) + (product - back));
            total[k] = next;
        }
    for (k = 0; t < n; t++, k++) {
        double product = a[t] * x[t], spread = SPAN_HPO_SPLITTER * a[t];
        double high = spread - (spread - a[t]), low = a[t] - high;
        double lost = high * x_high[t] - product + high * x_low[t] + low * x_high[t]
            + low * x_low[t];
        double next = total[k] + product, back = next - total[k];
        error[k] += lost + ((total[k] - (next - back)) + (product - back));
        total[k] = next;
    }
    for (k = 1; k < SPAN_HPO_PARTS; k++) {
        sum = total[0] + total[k];
        virtual = sum - total[0];
        error[0] += error[k] + ((total[0] - (sum - virtual)) + (total[k] - virtual));
        total[0] = sum;
    }
    return total[0] + error[0];
}

#endif
