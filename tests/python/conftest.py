# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share.

They run against an installed package (scripts/check-python.sh), on whichever OpenCL stack OCL_ICD_VENDORS selects; that
there is one is checked, so that a missing driver fails here and does not pass in silence.
"""
import gc
import os
import subprocess
import sys

import hypothesis
import pytest
import torch

import opennuma

hypothesis.settings.register_profile("default", deadline=None, max_examples=100, stateful_step_count=30,
                                     suppress_health_check=list(hypothesis.HealthCheck), derandomize=True, database=None)
hypothesis.settings.register_profile("many", hypothesis.settings.get_profile("default"), max_examples=10000,
                                     derandomize=False)
# Collecting is done before and after each test, and need not look at what the packages themselves consist of.
gc.collect()
gc.freeze()
torch.set_num_threads(1)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(params=["opencl:0", "host"])
def device(request):
    return opennuma.device(request.param)


@pytest.fixture
def opencl_device():
    return opennuma.device("opencl:0")


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Every test ends with as many live blocks as it began with."""
    gc.collect()
    before = opennuma.live_blocks()
    yield
    gc.collect()
    assert opennuma.live_blocks() == before


def run_python(program, **environment):
    """A program of its own; its output. It must succeed and print nothing on standard error."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                          env=os.environ | environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
