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


async def forever(limit):
    for _ in range(4):
        step()
        await asyncio.sleep(0)
    limit.reschedule(0)  # now: a busy machine makes as many steps
    await asyncio.sleep(60)


async def main():
    try:
        async with asyncio.timeout(None) as limit:
            await forever(limit)
    except asyncio.TimeoutError:
        print("timeout")
    for _ in range(3):
        await asyncio.get_running_loop().run_in_executor(None, step)


asyncio.run(main())
told(model)
