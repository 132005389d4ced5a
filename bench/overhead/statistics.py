"""Medians and their intervals."""

import random
import statistics

RESAMPLES = 4000


def median(values):
    return statistics.median(values)


def interval(values, seed):
    """95% bootstrap interval of the median; the values alone where there are too few."""
    if len(values) < 3:
        return min(values), max(values)
    generator = random.Random(seed)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return medians[int(RESAMPLES * 0.025)], medians[int(RESAMPLES * 0.975)]
