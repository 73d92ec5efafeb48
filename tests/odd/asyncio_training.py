# Coroutines: batches come from one task, another trains.
import asyncio

import torch
from told import told
from torch import nn


async def main():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = asyncio.Queue(1)

    async def produce():
        for _ in range(6):
            await batches.put(torch.randn(8, 4))
            await asyncio.sleep(0)
        await batches.put(None)

    task = asyncio.create_task(produce())
    while (x := await batches.get()) is not None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    await task
    told(model)


asyncio.run(main())
