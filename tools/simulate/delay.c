#include "tools/simulate/delay.h"

#include <math.h>

#define LONGEST_TIMES 20.0 /* the median; the tail of a log-normal has no end */

/* The quantile of the normal distribution, by Newton's method from the middle. */
static double normal_quantile(double p) {
    double x = 0;
    for (int i = 0; i < 60; i++) {
        double density = exp(-x * x / 2) / sqrt(2 * acos(-1.0));
        double step = (0.5 * erfc(-x / sqrt(2.0)) - p) / (density > 1e-12 ? density : 1e-12);
        step = step > 0.5 ? 0.5 : step < -0.5 ? -0.5 : step;
        x -= step;
        if (fabs(step) < 1e-10) break;
    }
    return x;
}

void delay_init(struct delay *delay, uint32_t median_us, uint32_t jitter_us) {
    delay->median_us = median_us;
    delay->jitter_us = jitter_us;
    double median = median_us, jitter = jitter_us;
    /* The sigma whose log-normal has this standard deviation, for a median of 1: s^2 = e^(o^2) (e^(o^2) - 1). */
    double ratio = median > 0 ? jitter / median : 0, square = (1 + sqrt(1 + 4 * ratio * ratio)) / 2;
    double sigma = sqrt(log(square));
    for (uint32_t i = 0; i < DELAY_STEPS; i++) {
        double p = (i + 0.5) / DELAY_STEPS;
        double us = median > 0 ? median * exp(sigma * normal_quantile(p)) : jitter * p;
        double longest = median * LONGEST_TIMES + jitter;
        delay->us[i] = (uint32_t)(us < longest ? us : longest);
    }
}
