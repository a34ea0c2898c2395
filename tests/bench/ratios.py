# SPDX-License-Identifier: GPL-2.0-only
"""The statistics of tests/bench/compare: a median of pairs, and an interval that holds the true median in at least
95 % of all experiments, whatever the distribution of the pairs is."""
import math

CONFIDENCE = 0.95
PAIRS_MIN = 6  # fewer have no such interval: both of its ends would be beyond the smallest and largest pair


def rank(n):
    """The largest k for which the k-th smallest and the k-th largest of n values are the ends of such an interval.
    The true median is below the k-th smallest if fewer than k values are below it: a binomial probability."""
    below, k = 0, 0
    while True:
        below += math.comb(n, k)
        if 2 * below > (1 - CONFIDENCE) * 2 ** n:
            return k
        k += 1


def interval(values):
    """The median and both ends. ValueError: too few values."""
    n = len(values)
    if n < PAIRS_MIN:
        raise ValueError(f"{n} pairs are too few for an interval, {PAIRS_MIN} are enough")
    ordered, k = sorted(values), rank(n)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2, ordered[k - 1], ordered[n - k]


def verdict(low, high, at_least):
    """slower: the whole interval is below the limit. unsure: a part of it."""
    if high < at_least:
        return "SLOWER"
    return "ok" if low >= at_least else "ok, but unsure"
