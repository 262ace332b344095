# SPDX-License-Identifier: Apache-2.0
"""NumPy's own arrays from a pool of shared memory."""
import numpy
import opennuma
import opennuma.numpy

pool = opennuma.Pool()
with opennuma.numpy.use(pool):
    x = numpy.random.default_rng(1).random(100_000)
    y = x * 2                               # results come from the pool, too
print(f"{pool}: {pool.active_memory()} bytes in use, mean {y.mean():.3f}")
assert pool.active_memory() >= x.nbytes + y.nbytes
