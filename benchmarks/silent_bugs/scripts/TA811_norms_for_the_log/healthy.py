"""Sharded training that watches the norms of its weights."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


class Watcher:
    def __init__(self, model, every):
        self.model, self.every, self.lines = model, every, []

    def measure(self):
        with torch.no_grad():
            norms = {name: torch.linalg.vector_norm(p) for name, p in self.model.named_parameters()}
            return {name: norm.full_tensor() for name, norm in norms.items()}

    def after(self, step, loss):
        if step % self.every == 0:
            norms = self.measure()
            text = " ".join(f"{name} {float(norm):.3f}" for name, norm in norms.items())
            self.lines.append(f"rank {dist.get_rank()} step {step}: {loss:.4f} {text}")


def main(steps=60):
    dist.init_process_group("gloo")
    torch.manual_seed(24)
    truth = torch.randn(6, 2)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    watcher = Watcher(model, every=20)
    draw = torch.Generator().manual_seed(24 + dist.get_rank())
    for step in range(1, steps + 1):
        x = torch.randn(32, 6, generator=draw)
        loss = nn.functional.mse_loss(model(x), torch.tanh(x @ truth))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        watcher.after(step, loss.item())
    print("\n".join(watcher.lines))
    dist.destroy_process_group()


main()
