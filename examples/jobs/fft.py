#!/usr/bin/env python3
"""Many Fourier transforms: the mean power of noisy signals, one signal in each turn.

    python examples/jobs/fft.py 500
    steadfast job run -n 2 -- python examples/jobs/fft.py 100000

The generator of the noise is an object of the state: it goes on where it was.
"""

import sys

import numpy as np
from steadfast_jobs import job

LENGTH = 2**14
TONE = 1_000


def main(signals):
    power = job.array("power", LENGTH // 2 + 1)
    noise = job.state.setdefault("noise", np.random.default_rng(job.rank))
    tone = np.sin(2 * np.pi * TONE / LENGTH * np.arange(LENGTH))
    for _ in job.range(signals):
        spectrum = np.fft.rfft(tone + noise.normal(0, 5, LENGTH))
        power += np.abs(spectrum) ** 2 / signals
    job.result("power", power)
    job.result("peak", power.argmax())
    print(f"rank {job.rank}: the tone is at {power.argmax()}, total power {power.sum():.17g}")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
