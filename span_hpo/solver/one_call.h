/* Loops of the fit in one call that run over all rows in every step.
 *
 * Each loop keeps its maxima and minima in independent places, which compilers turn into
 * vector instructions without assumptions about NaN. No loop adds numbers in an order that depends
 * on the processor, so that all of them get the same answers.
 */
#ifndef SPAN_HPO_ONE_CALL_H
#define SPAN_HPO_ONE_CALL_H

#include <stdlib.h>

#include "loops.h"

#define SPAN_HPO_LOOP static SPAN_HPO_CLONES

#if defined(_MSC_VER)
#define SPAN_HPO_RESTRICT __restrict
#else
#define SPAN_HPO_RESTRICT restrict
#endif

#define SPAN_HPO_PLACES 16
#define SPAN_HPO_CHUNK 32

typedef const double *SPAN_HPO_RESTRICT span_hpo_in;
typedef double *SPAN_HPO_RESTRICT span_hpo_out;

/* Subtract step (K_i - K_j) from v, and return the largest v of the rows that may grow and the
 * least v of those that may fall. The bars are 0, or infinite for rows that may not. */
SPAN_HPO_LOOP void span_hpo_moved(
    ptrdiff_t n, double step, const double *K_i, const double *K_j, span_hpo_in bar_growth,
    span_hpo_in bar_fall, span_hpo_out v, double *top, double *bottom)
{
    double high[SPAN_HPO_PLACES], low[SPAN_HPO_PLACES];
    ptrdiff_t t = 0;
    int k;
    for (k = 0; k < SPAN_HPO_PLACES; k++) {
        high[k] = -INFINITY;
        low[k] = INFINITY;
    }
    for (; t + SPAN_HPO_PLACES <= n; t += SPAN_HPO_PLACES)
        for (k = 0; k < SPAN_HPO_PLACES; k++) {
            double x = v[t + k] - step * (K_i[t + k] - K_j[t + k]);
            double growth = x + bar_growth[t + k], fall = x + bar_fall[t + k];
            v[t + k] = x;
            high[k] = growth > high[k] ? growth : high[k];
            low[k] = fall < low[k] ? fall : low[k];
        }
    for (; t < n; t++) {
        double x = v[t] - step * (K_i[t] - K_j[t]);
        double growth = x + bar_growth[t], fall = x + bar_fall[t];
        v[t] = x;
        high[0] = growth > high[0] ? growth : high[0];
        low[0] = fall < low[0] ? fall : low[0];
    }
    for (k = 1; k < SPAN_HPO_PLACES; k++) {
        high[0] = high[k] > high[0] ? high[k] : high[0];
        low[0] = low[k] < low[0] ? low[k] : low[0];
    }
    *top = high[0];
    *bottom = low[0];
}

/* Return the first row that may grow and has this v; there must be one. */
SPAN_HPO_LOOP ptrdiff_t span_hpo_position(
    ptrdiff_t n, span_hpo_in v, span_hpo_in bar_growth, double top)
{
    ptrdiff_t t = 0;
    int k;
    for (; t + SPAN_HPO_CHUNK <= n; t += SPAN_HPO_CHUNK) {
        int found = 0;
        for (k = 0; k < SPAN_HPO_CHUNK; k++)
            found |= v[t + k] + bar_growth[t + k] == top;
        if (found)
            break;
    }
    while (t < n - 1 && v[t] + bar_growth[t] != top)
        t++;
    return t;
}

/* Return the row with which a step of row i gains most: (top - v)^2 / |x_i - x_t|^2. */
SPAN_HPO_LOOP ptrdiff_t span_hpo_partner(
    ptrdiff_t n, double top, double K_ii, double flat_i, span_hpo_in K_i, span_hpo_in diagonal,
    span_hpo_in flat, span_hpo_in bar_fall, span_hpo_in v, span_hpo_out gains)
{
    double most[SPAN_HPO_PLACES];
    ptrdiff_t t = 0;
    int k;
    for (k = 0; k < SPAN_HPO_PLACES; k++)
        most[k] = 0.0;
    for (; t + SPAN_HPO_PLACES <= n; t += SPAN_HPO_PLACES)
        for (k = 0; k < SPAN_HPO_PLACES; k++) {
            double x = top - (v[t + k] + bar_fall[t + k]);
            double distance = K_ii + diagonal[t + k] - 2 * K_i[t + k], least = flat_i + flat[t + k];
            x = x > 0 ? x : 0;
            distance = distance > least ? distance : least;
            x = x * x / distance;
            gains[t + k] = x;
            most[k] = x > most[k] ? x : most[k];
        }
    for (; t < n; t++) {
        double x = top - (v[t] + bar_fall[t]);
        double distance = K_ii + diagonal[t] - 2 * K_i[t], least = flat_i + flat[t];
        x = x > 0 ? x : 0;
        distance = distance > least ? distance : least;
        x = x * x / distance;
        gains[t] = x;
        most[0] = x > most[0] ? x : most[0];
    }
    for (k = 1; k < SPAN_HPO_PLACES; k++)
        most[0] = most[k] > most[0] ? most[k] : most[0];
    for (t = 0; t + SPAN_HPO_CHUNK <= n; t += SPAN_HPO_CHUNK) {
        int found = 0;
        for (k = 0; k < SPAN_HPO_CHUNK; k++)
            found |= gains[t + k] == most[0];
        if (found)
            break;
    }
    while (t < n - 1 && gains[t] != most[0])
        t++;
    return t;
}

/* Add a x + b z + c u + d w to y, in this order. */
SPAN_HPO_LOOP void span_hpo_add_four(
    ptrdiff_t n, double a, const double *x, double b, const double *z, double c, const double *u,
    double d, const double *w, span_hpo_out y)
{
    ptrdiff_t t;
    for (t = 0; t < n; t++)
        y[t] = (((y[t] + a * x[t]) + b * z[t]) + c * u[t]) + d * w[t];
}

#endif
