# SPDX-License-Identifier: Apache-2.0
"""A model whose parameters lie in memory that CPU and device share, trained by PyTorch as ever."""
import opennuma.torch
import torch

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
opennuma.torch.share(model)
optimizer = torch.optim.Adam(model.parameters(), 0.03)
inputs = torch.rand(256, 2) * 2 - 1
targets = inputs[:, :1] * inputs[:, 1:]
with opennuma.torch.on_host(model): # the CPU's turn on all parameters
    for _ in range(300):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.5f}; parameters in {opennuma.torch.block_of(model[0].weight)}")
assert loss.item() < 0.01
