# SPDX-License-Identifier: Apache-2.0
"""PyTorch tensors of the CPU over shared memory."""
import gc

import pytest
import torch

import opennuma
import opennuma.torch

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.uint8, torch.bool, torch.complex64, torch.complex128]


def test_alias_is_the_same_bytes(device):
    for dtype in DTYPES:
        shared = opennuma.torch.zeros(3, 4, dtype=dtype, device=device)
        tensor = shared.cpu_alias()
        assert (tensor.shape, tensor.dtype, tensor.data_ptr()) == ((3, 4), dtype, shared.array.pointer)
        assert tensor.is_contiguous() and not tensor.any()
        tensor[1] = 1
        assert torch.equal(shared.cpu_alias(), tensor)
    assert opennuma.torch.empty((2, 5), device=device).cpu_alias().shape == (2, 5)
    assert opennuma.torch.empty(device=device).cpu_alias().shape == ()


def test_device_alias():
    shared = opennuma.torch.zeros(4, device="host")
    shared.device_alias().add_(1)
    assert shared.cpu_alias().tolist() == [1.0] * 4
    with pytest.raises(NotImplementedError, match="opennuma.opencl.argument"):
        opennuma.torch.zeros(4, device="opencl:0").device_alias()


def test_tensor_keeps_the_bytes(device):
    pool = opennuma.Pool(device)
    tensor = opennuma.torch.zeros(1000, pool=pool).cpu_alias()
    view = tensor[10:20].view(2, 5)
    del tensor
    gc.collect()
    assert pool.statistics()["in_use_blocks"] == 1
    view.fill_(2)
    assert opennuma.torch.block_of(view).nbytes == 4000
    assert view.sum() == 20
    del view
    assert pool.active_memory() == 0


def test_block_of_foreign_tensors():
    with pytest.raises(LookupError):
        opennuma.torch.block_of(torch.zeros(3))


def test_autograd_through_an_alias(device):
    weight = torch.nn.Parameter(opennuma.torch.zeros(3, device=device).cpu_alias())
    (weight * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert weight.grad.tolist() == [1.0, 2.0, 3.0]


def trained(model, optimizer_of, inputs, targets):
    optimizer = optimizer_of(model.parameters())
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("optimizer_of", [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.Adam(p, 0.05)])
def test_training_is_the_same(device, optimizer_of):
    """Losses of a model whose parameters lie in shared memory are those of its twin elsewhere, bit for bit."""
    def model():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    torch.manual_seed(2)
    inputs = torch.randn(64, 8)
    targets = (inputs[:, 0] > 0).long() + (inputs[:, 1] > 0).long()
    pool = opennuma.Pool(device)
    shared = opennuma.torch.share(model(), pool=pool)
    assert pool.statistics()["in_use_blocks"] == len(shared.state_dict())
    addresses = [tensor.data_ptr() for tensor in shared.state_dict().values()]
    assert all(opennuma.torch.block_of(tensor).device == device for tensor in shared.state_dict().values())
    with opennuma.torch.on_host(shared):
        losses = trained(shared, optimizer_of, inputs, targets)
    assert losses == trained(model(), optimizer_of, inputs, targets)
    assert losses[-1] < losses[0] / 2
    assert addresses == [tensor.data_ptr() for tensor in shared.state_dict().values()] # stepped in place
    del shared
    gc.collect()
    assert pool.active_memory() == 0


def test_tied_parameters_stay_tied():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    opennuma.torch.share(model, device="host")
    assert model[1].weight is model[0].weight
    assert model[1].weight.data_ptr() == model[0].weight.data_ptr()


def test_limit_is_memory_error():
    with pytest.raises(MemoryError, match="ONUMA_ERROR_LIMIT"):
        opennuma.torch.empty(1 << 20, pool=opennuma.Pool("host", limit=1 << 20))


def test_state_dict_round_trip(tmp_path):
    model = opennuma.torch.share(torch.nn.Linear(4, 4), device="host")
    torch.save(model.state_dict(), tmp_path / "model.pt")
    other = opennuma.torch.share(torch.nn.Linear(4, 4), device="host")
    address = other.weight.data_ptr()
    other.load_state_dict(torch.load(tmp_path / "model.pt"))
    assert torch.equal(other.weight, model.weight) and other.weight.data_ptr() == address
