#!/usr/bin/env python3
"""Writes tests/arima_golden.csv: windows of counts and what statsmodels' exact maximum likelihood makes of them.

Needs python3-statsmodels (0.13.5 of Debian 12 made the committed file); the tests read only the CSV.
Usage: python3 tests/arima_golden.py > tests/arima_golden.csv
"""
import random
import sys
import warnings

import numpy
from statsmodels.tsa.arima.model import ARIMA

HORIZON = 12


def walk(seed, length, low=0, high=40):
    """Machines that mostly stay and now and then leave or return a few at a time."""
    source = random.Random(seed)
    counts = [source.randint(low + 5, high - 5)]
    while len(counts) < length:
        step = source.choice([0, 0, 0, -1, 1, -3, 2, 4, -5])
        counts.append(min(high, max(low, counts[-1] + step)))
    return counts


def forecast(window):
    """ARIMA(1,1,0) with drift: an AR(1) with a mean on the differences. The best of several starts, since the
    likelihood of so short a window can have more than one peak."""
    differences = numpy.diff(window)
    best = None
    for start in (-0.9, -0.5, 0.0, 0.5, 0.9):
        model = ARIMA(differences, order=(1, 0, 0), trend="c")
        fit = model.fit(
            start_params=[differences.mean(), start, max(differences.var(), 1e-3)],
            method_kwargs={"pgtol": 1e-12, "factr": 10, "maxiter": 2000},
        )
        if best is None or fit.llf > best.llf:
            best = fit
    steps = numpy.cumsum(best.forecast(HORIZON))
    return best.params[1], window[-1] + steps


def main():
    warnings.simplefilter("ignore")
    windows = [walk(seed, length) for seed, length in enumerate([8, 9, 10, 12, 12, 17, 17, 20, 30, 60] * 2)]
    windows.append([10, 12, 14, 16, 18, 20, 22, 25])
    windows.append([32, 32, 32, 32, 28, 28, 28, 28, 28, 28])
    print("phi;window;forecast")
    for window in windows:
        phi, values = forecast(window)
        print(f"{phi:.6f};{' '.join(map(str, window))};{' '.join(f'{v:.6f}' for v in values)}")


if __name__ == "__main__":
    sys.exit(main())
