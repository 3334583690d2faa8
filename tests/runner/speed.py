"""How slow this machine is now, as a factor for the deadlines of tests.

The factor is 1 on a machine that is as fast as a quiet one on which the tests were written, or
faster; it is measured once and passed on in the environment."""

import hashlib
import multiprocessing
import os
import time

VARIABLE = "APP_HEALTH_TEST_SLOWNESS"
# Seconds that the work takes on two quiet cores.
REFERENCE = 0.25
# Above it, a run would not end in time whatever its deadlines are.
HIGHEST = 8.0


def work(_):
    """A fixed amount of work: some 0.2 s of one core."""
    digest = b""
    for number in range(120_000):
        digest = hashlib.sha256(digest + str(number).encode()).digest()
    return digest


def factor(seconds):
    """Returns the factor for a machine that needs so long for the work."""
    return round(min(max(seconds / REFERENCE, 1.0), HIGHEST), 2)


def measure():
    """Puts the factor into the environment and prints it, unless an outer run has done so."""
    if VARIABLE in os.environ:
        return
    begin = time.monotonic()
    with multiprocessing.Pool(2) as pool:
        pool.map(work, range(2))
    seconds = time.monotonic() - begin
    os.environ[VARIABLE] = str(factor(seconds))
    print(f"machine: {seconds:.2f} s for {REFERENCE} s of work, deadlines x {factor(seconds)}", flush=True)
