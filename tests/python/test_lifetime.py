# SPDX-License-Identifier: Apache-2.0
"""Bytes live while any alias does, in any package, on any thread, at the interpreter's end too.

HYPOTHESIS_PROFILE=many plays ten thousand sequences; that, and a run under a sanitizer or valgrind, is by hand.
"""
import ctypes
import gc
import threading

import numpy
import pytest
import torch
from conftest import run_python
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import opennuma


class Aliases(RuleBasedStateMachine):
    """Arrays, their aliases and the aliases' aliases, made and dropped in any order, against a list of who holds what."""

    @initialize(which=st.sampled_from(["opencl:0", "host"]))
    def start(self, which):
        self.pool = opennuma.Pool(which)
        self.held = [] # (number of the block, alias)
        self.blocks = 0
        gc.collect()
        self.before = opennuma.live_blocks()

    def pick(self, data):
        return data.draw(st.integers(0, len(self.held) - 1)) if self.held else None

    @rule(count=st.integers(1, 5000), pool_goes=st.booleans())
    def create(self, count, pool_goes):
        made = opennuma.empty(count, "uint8", pool=self.pool)
        numpy.asarray(made)[:] = self.blocks % 256
        self.held.append((self.blocks, made))
        self.blocks += 1
        if pool_goes: # its blocks keep it alive
            self.pool = opennuma.Pool(self.pool.device)

    @rule(data=st.data(), how=st.sampled_from([numpy.asarray, numpy.from_dlpack, torch.from_dlpack, memoryview]))
    def alias(self, data, how):
        i = self.pick(data)
        if i is None:
            return
        number, source = self.held[i]
        if not isinstance(source, opennuma.Array):
            how = numpy.asarray
        self.held.append((number, how(source)))

    @rule(data=st.data(), start=st.integers(0, 10))
    def cut(self, data, start):
        i = self.pick(data)
        if i is None or isinstance(self.held[i][1], opennuma.Array):
            return
        number, source = self.held[i]
        self.held.append((number, source[start:]))

    @rule(data=st.data())
    def capsule_that_nobody_takes(self, data):
        i = self.pick(data)
        if i is not None and isinstance(self.held[i][1], opennuma.Array):
            self.held[i][1].__dlpack__()

    @rule(data=st.data())
    def find(self, data):
        i = self.pick(data)
        if i is not None and isinstance(self.held[i][1], opennuma.Array):
            number, source = self.held[i]
            self.held.append((number, numpy.frombuffer(opennuma.find_block(source.pointer), "uint8")))

    @rule(data=st.data(), elsewhere=st.booleans())
    def drop(self, data, elsewhere):
        i = self.pick(data)
        if i is None:
            return
        victim = [self.held.pop(i)]
        if elsewhere:
            thread = threading.Thread(target=victim.clear)
            thread.start()
            thread.join()

    @invariant()
    def counts_are_exact(self):
        if hasattr(self, "held"):
            assert opennuma.live_blocks() - self.before == len({number for number, _ in self.held})

    @invariant()
    def bytes_are_intact(self):
        for number, alias in getattr(self, "held", ()):
            seen = numpy.asarray(alias)
            assert seen.size == 0 or (seen[0], seen[-1]) == (number % 256, number % 256)

    def teardown(self):
        if hasattr(self, "held"):
            self.held.clear()
            gc.collect()
            assert opennuma.live_blocks() == self.before and self.pool.active_memory() == 0


TestAliases = Aliases.TestCase


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_capsule_taken_twice(version):
    class Again:
        """Gives one capsule again and again."""

        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, **ignored):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    made = opennuma.zeros(3, "int32", device="host")
    again = Again(made.__dlpack__(max_version=version))
    taken = numpy.from_dlpack(again)
    with pytest.raises((ValueError, RuntimeError)):
        numpy.from_dlpack(again)
    del made, again
    assert taken.tolist() == [0, 0, 0]


def test_import_that_raises_frees_once():
    made = opennuma.zeros(3, "bfloat16", device="host")
    before = opennuma.live_blocks()
    with pytest.raises(Exception): # NumPy has no such type
        numpy.from_dlpack(made)
    assert opennuma.live_blocks() == before
    del made
    gc.collect()
    assert opennuma.live_blocks() == before - 1


def test_deleter_needs_no_interpreter_lock():
    """ctypes gives the lock back before it calls; the thread that takes down the last holding has never had it."""
    pool = opennuma.Pool("host")
    made = opennuma.empty(1000, pool=pool)
    capsule = made.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.restype, rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    managed = pointer(capsule, b"dltensor")
    name = b"used_dltensor"
    assert rename(capsule, name) == 0
    # The deleter is the last member of DLManagedTensor, whose tensor has 48 bytes.
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.c_void_p.from_address(managed + 56).value)
    del made
    assert pool.active_memory() > 0
    thread = threading.Thread(target=deleter, args=(managed,))
    thread.start()
    thread.join()
    assert pool.active_memory() == 0
    del capsule


def test_pool_outlives_its_object():
    made = opennuma.zeros(1000, pool=opennuma.Pool("host"))
    gc.collect()
    assert numpy.asarray(made).sum() == 0


ENDINGS = {
    "globals": "kept = [made, numpy.asarray(made), torch.from_dlpack(made), memoryview(made)]",
    "a cycle": "kept = [made]; kept.append(kept)",
    "a daemon thread": """
import threading, time
threading.Thread(target=lambda alias: time.sleep(60), args=(torch.from_dlpack(made),), daemon=True).start()
""",
    "a handler at exit": "import atexit; atexit.register(lambda alias: alias.add_(1), torch.from_dlpack(made))",
    "an open access": "access = made.on_host('w'); access.__enter__()",
    "a builtin module": "import builtins; builtins.kept = torch.from_dlpack(made); sys.kept = made; torch.kept = made",
    "numpy's memory": """
import opennuma.numpy
context = opennuma.numpy.use(opennuma.Pool())
context.__enter__()
kept = numpy.arange(1000.)
""",
    "a gradient": """
parameter = torch.nn.Parameter(torch.from_dlpack(made))
parameter.sum().backward()
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_interpreter_ends(ending):
    program = f"import sys, numpy, torch, opennuma\nmade = opennuma.zeros(1000)\n{ENDINGS[ending]}\nprint('end')\n"
    assert run_python(program) == "end\n"


def test_child_of_fork():
    """A child may use and drop what it inherits; it ends in peace, and the parent's bytes stay."""
    assert run_python("""
import os, numpy, opennuma
made, other = opennuma.zeros(1000, device="host"), opennuma.zeros(1000)
child = os.fork()
if child == 0:
    numpy.asarray(made)[:] = 1
    fresh = opennuma.zeros(10, device="host")
    del made, other, fresh
    os._exit(0)
print(os.waitpid(child, 0)[1], numpy.asarray(made).sum(), numpy.asarray(other).sum())
""") == "0 0.0 0.0\n"
