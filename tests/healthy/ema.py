"""Tempting: a shadow copy of the weights that evaluation swaps in and out, and a best state that is a copy."""

import copy

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class EMA:
    def __init__(self, model, decay):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ours, theirs in zip(self.module.state_dict().values(), model.state_dict().values()):
            if ours.dtype.is_floating_point:
                ours.copy_(ours * self.decay + (1.0 - self.decay) * theirs)
            else:
                ours.copy_(theirs)


model = nn.Sequential(nn.Linear(8, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))
ema = EMA(model, 0.999)
swa = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)


@torch.no_grad()
def evaluate(model, batches):
    was_training = model.training
    model.eval()
    total = sum(nn.functional.mse_loss(model(x).squeeze(-1), y).item() for x, y in batches)
    model.train(was_training)
    return total / len(batches)


def fit(batches, validation, epochs):
    best, best_state = float("inf"), None
    for epoch in range(epochs):
        model.train()
        for x, y in batches:
            loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update(model)
            swa.update_parameters(model)
        score = evaluate(ema.module, validation)
        if score < best:
            best, best_state = score, {k: v.detach().clone() for k, v in ema.module.state_dict().items()}
    torch.optim.swa_utils.update_bn(batches, swa)
    model.load_state_dict(best_state)
    return model
