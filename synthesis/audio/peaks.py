"""The outline of a recording, for a page to draw."""

from __future__ import annotations

import numpy as np

from synthesis.audio.decode import Samples


def peaks(samples: Samples, buckets: int) -> list[float]:
    """The largest absolute value in each of `buckets` equal parts of (n,) `samples`, from 0 to 1, to three
    digits.

    Fewer samples than buckets give one bucket each. ValueError for less than one bucket.
    """
    if buckets < 1:
        raise ValueError("at least one bucket")
    if not len(samples):
        return []
    edges = np.linspace(0, len(samples), min(buckets, len(samples)) + 1).astype(int)[:-1]
    largest = np.minimum(np.maximum.reduceat(np.abs(samples), edges), 1.0)
    return [round(float(value), 3) for value in largest]
