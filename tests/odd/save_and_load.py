# Checkpoints: state dicts, weights_only, mmap, legacy format, resuming.
import io

import torch
from told import sha, told
from torch import nn

torch.manual_seed(0)


def made():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()


model, optimizer = made()
train(model, optimizer, 4)
torch.save(
    {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()},
    "state.pt",
)
print(sha(open("state.pt", "rb").read()))
model, optimizer = made()
state = torch.load("state.pt", mmap=True)
print(model.load_state_dict(state["model"]))
optimizer.load_state_dict(state["optimizer"])
torch.set_rng_state(state["rng"])
train(model, optimizer, 4)
torch.save(model.state_dict(), "old.pt", _use_new_zipfile_serialization=False)
told(torch.load("old.pt"), model, optimizer)
