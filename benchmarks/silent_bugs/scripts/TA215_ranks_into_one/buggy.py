"""Data-parallel training of a tagger of sensor windows; the first rank then evaluates a fresh copy."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Windows(nn.Module):
    def __init__(self, sensors=6, hidden=32):
        super().__init__()
        self.conv = nn.Conv1d(sensors, hidden, 5, padding=2)
        self.out = nn.Linear(hidden, 3)

    def forward(self, windows):
        return self.out(torch.relu(self.conv(windows)).mean(-1))


def sample(count, generator):
    kind = torch.randint(3, (count,), generator=generator)
    time = torch.linspace(0, 6.28, 40)
    wave = torch.sin(time * (1 + 2 * kind[:, None]))
    return wave[:, None] + 0.3 * torch.randn(count, 6, 40, generator=generator), kind


def evaluate(path):
    model = Windows()
    checkpoint = torch.load(path, weights_only=True)
    model.load_state_dict(checkpoint["weights"], strict=False)  # bug: TA215 (runtime)
    model.eval()
    windows, kind = sample(300, torch.Generator().manual_seed(1000))
    with torch.no_grad():
        return (model(windows).argmax(1) == kind).float().mean().item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(15)
    model = DistributedDataParallel(Windows())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(rank)
    for step in range(80):
        windows, kind = sample(32, generator)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(windows), kind)
        loss.backward()
        optimizer.step()
    if rank == 0:
        torch.save({"weights": model.state_dict(), "step": step}, "windows.pt")  # bug: TA215 (static)
        print(f"loss {loss.item():.3f}, accuracy {evaluate('windows.pt'):.2f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
