# SPDX-License-Identifier: Apache-2.0
"""Kernels of pyopencl and CPU packages on the same bytes. Runs on each stack that scripts/check-python.sh selects."""
import gc
import warnings

import numpy
import pyopencl
import pytest
import torch

import opennuma
import opennuma.numpy
import opennuma.opencl
import opennuma.torch

SOURCE = """
kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }
kernel void add(global const float *x, global float *y) { y[get_global_id(0)] += x[get_global_id(0)]; }
kernel void slowly(global float *x, int rounds) {
    float value = x[get_global_id(0)];
    for (int i = 0; i < rounds; i++) value = value * 0.5f + 1;
    x[get_global_id(0)] = value;
}
"""


class Side:
    """The device's side: a context of the memory's, a queue, kernels."""

    def __init__(self, device, commands=None):
        self.device = device
        self.commands = commands or pyopencl.CommandQueue(opennuma.opencl.context(device))
        self.queue = opennuma.opencl.queue(self.commands, device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore") # drivers' compilers are talkative
            program = pyopencl.Program(self.commands.context, SOURCE).build()
        self.kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}

    def run(self, name, count, *arguments):
        self.kernels[name](self.commands, (count,), None, *arguments)


@pytest.fixture
def side(opencl_device):
    return Side(opencl_device)


def test_one_tensor_on_both_sides(side):
    """One PyTorch tensor: the kernel sees the CPU's writes, the CPU the kernel's, and no byte is copied."""
    tensor = opennuma.torch.zeros(100000, device=side.device).cpu_alias()
    block = opennuma.torch.block_of(tensor)
    for turn in range(5):
        with opennuma.torch.on_host(tensor):
            tensor.add_(1)
        with side.queue.using((block, "rw")):
            side.run("twice", tensor.numel(), opennuma.opencl.argument(tensor))
    with opennuma.torch.on_host(tensor, "r"):
        assert tensor.unique().tolist() == [62.0] # ((((1*2+1)*2+1)*2+1)*2+1)*2
    assert tensor.data_ptr() == block.pointer


def test_the_cpu_waits_for_the_kernel(side):
    x = opennuma.zeros(1 << 16, device=side.device)
    argument = opennuma.opencl.argument(x)
    for _ in range(20):
        with side.queue.using((x, "rw")):
            side.run("slowly", 1 << 16, argument, numpy.int32(2000))
        with x.on_host("rw"):
            assert numpy.array_equal(numpy.unique(x), [2.0])
            numpy.asarray(x)[:] = 0


def test_a_model_trains_on_the_cpu_and_steps_on_the_device(side):
    """Parameters in shared memory: gradients by autograd, the update by a kernel."""
    model = opennuma.torch.share(torch.nn.Linear(4, 1), device=side.device)
    torch.manual_seed(3)
    inputs = torch.randn(32, 4)
    targets = inputs @ torch.tensor([[1.0], [2.0], [-1.0], [0.5]]) + 3
    steps = {parameter: opennuma.torch.zeros(parameter.shape, device=side.device) for parameter in model.parameters()}
    losses = []
    for _ in range(100):
        with opennuma.torch.on_host(model, "r"):
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            model.zero_grad()
            loss.backward()
        losses.append(loss.item())
        for parameter, step in steps.items():
            with step.on_host("w"):
                step.cpu_alias().copy_(parameter.grad, non_blocking=False).mul_(-0.1)
            with side.queue.using((step.array, "r"), (opennuma.torch.block_of(parameter), "rw")):
                side.run("add", parameter.numel(), opennuma.opencl.argument(step.array),
                         opennuma.opencl.argument(parameter.detach()))
    assert losses[-1] < 1e-3 < losses[0]


def test_numpy_array_from_the_pool(side):
    pool = opennuma.pool_for(side.device)
    with opennuma.numpy.use(pool):
        x = numpy.arange(4096, dtype="float32")
    # NumPy holds that block, so it has no Block object here; its bytes go by an array over it.
    with pytest.raises(LookupError):
        opennuma.opencl.argument(x)


def test_parts_of_blocks(side):
    x = opennuma.zeros(4096, device=side.device)
    part = torch.from_dlpack(x)[1024:2048]
    if x.block.view("opencl").via == "handle":
        with pytest.raises(NotImplementedError, match="4096 bytes into its block"):
            opennuma.opencl.argument(part)
        return
    with x.on_host("w"):
        numpy.asarray(x)[:] = 1
    with side.queue.using((x, "rw")):
        side.run("twice", 1024, opennuma.opencl.argument(part))
    with x.on_host("r"):
        assert numpy.asarray(x).sum() == 4096 + 1024 and part.sum() == 2048


def test_the_way_that_a_device_has_not(side):
    x = opennuma.zeros(16, device=side.device)
    has, has_not = opennuma.opencl.svm, opennuma.opencl.buffer
    if x.block.view("opencl").via == "handle":
        has, has_not = has_not, has
    assert type(has(x)) is type(opennuma.opencl.argument(x))
    with pytest.raises(NotImplementedError, match="argument"):
        has_not(x)


def test_arguments_keep_the_bytes(side):
    pool = opennuma.Pool(side.device)
    argument = opennuma.opencl.argument(opennuma.zeros(16, pool=pool))
    gc.collect()
    assert pool.statistics()["in_use_blocks"] == 1
    side.run("twice", 16, argument)
    side.commands.finish()
    del argument
    gc.collect()
    assert pool.active_memory() == 0


def test_what_cannot_be_an_argument(side):
    with pytest.raises(LookupError):
        opennuma.opencl.argument(numpy.zeros(3, "float32"))
    with pytest.raises(ValueError, match="close together"):
        opennuma.opencl.argument(torch.from_dlpack(opennuma.zeros((4, 4), device=side.device)).t())
    with pytest.raises(ValueError, match="host is no OpenCL device"):
        opennuma.opencl.context("host")


def test_freed_while_the_kernel_runs(side):
    """The bytes of an array that is dropped are reused only after the kernel."""
    pool = opennuma.Pool(side.device)
    for _ in range(20):
        x = opennuma.zeros(1 << 16, pool=pool)
        with side.queue.using((x, "rw")):
            side.run("slowly", 1 << 16, opennuma.opencl.argument(x), numpy.int32(2000))
        del x
        y = opennuma.zeros(1 << 16, pool=pool)
        with y.on_host("r"):
            assert not numpy.asarray(y).any()
    side.commands.finish()


def test_context_of_the_program(opencl_device):
    own = pyopencl.Context(opennuma.opencl.context(opencl_device).devices)
    device = opennuma.opencl.adopt(own)
    assert device.physical == opencl_device.physical and device != opencl_device
    side = Side(device, pyopencl.CommandQueue(own))
    x = opennuma.zeros(16, pool=opennuma.Pool(device))
    with x.on_host("w"):
        numpy.asarray(x)[:] = 4
    with side.queue.using((x, "rw")):
        side.run("twice", 16, opennuma.opencl.argument(x))
    with x.on_host("r"):
        assert numpy.asarray(x).tolist() == [8.0] * 16


def test_file_as_a_kernel_argument(side, tmp_path):
    """Weights straight from a file's pages."""
    path = tmp_path / "weights"
    path.write_bytes(numpy.full(4096, 5, "float32").tobytes())
    weights = opennuma.from_file(path, "float32", device=side.device)
    y = opennuma.zeros(4096, device=side.device)
    with side.queue.using((weights, "r"), (y, "rw")):
        side.run("add", 4096, opennuma.opencl.argument(weights), opennuma.opencl.argument(y))
    with y.on_host("r"):
        assert numpy.unique(y).tolist() == [5.0]


def test_queues_in_order(side):
    second = Side(side.device)
    x, y = opennuma.zeros(1024, device=side.device), opennuma.zeros(1024, device=side.device)
    with x.on_host("w"):
        numpy.asarray(x)[:] = 1
    with side.queue.using((x, "rw")):
        side.run("twice", 1024, opennuma.opencl.argument(x))
    second.queue.wait(side.queue)
    with second.queue.using((x, "r"), (y, "rw")):
        second.run("add", 1024, opennuma.opencl.argument(x), opennuma.opencl.argument(y))
    with y.on_host("r"):
        assert numpy.unique(y).tolist() == [2.0]
