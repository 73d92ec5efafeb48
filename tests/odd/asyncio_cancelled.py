# A training that is cancelled by a timeout of asyncio, and one in an executor.
import asyncio

import torch
from told import told
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()


async def forever():
    for _ in range(4):
        step()
        await asyncio.sleep(0)
    await asyncio.sleep(60)


async def main():
    try:
        await asyncio.wait_for(forever(), 0.5)
    except asyncio.TimeoutError:
        print("timeout")
    for _ in range(3):
        await asyncio.get_running_loop().run_in_executor(None, step)


asyncio.run(main())
told(model)
