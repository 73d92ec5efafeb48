import copy

import torch
from accelerate import Accelerator
from torch import nn
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset


def cycle(loader):
    while True:
        for batch in loader:
            yield batch


class Denoiser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, x):
        noise = torch.randn_like(x)
        return nn.functional.mse_loss(self.inner(x + noise), noise)


class Trainer:
    def __init__(
        self, model, dataset, *, batch_size=4, steps=4, accumulate_every=2, lr=1e-4, max_grad_norm=1.0
    ):
        self.accelerator = Accelerator(cpu=True, mixed_precision="no")
        self.model = model
        self.steps, self.accumulate_every, self.max_grad_norm = steps, accumulate_every, max_grad_norm
        self.opt = AdamW(model.parameters(), lr=lr)
        self.dl = cycle(self.accelerator.prepare(DataLoader(dataset, batch_size=batch_size, shuffle=True)))
        self.ema = copy.deepcopy(model).requires_grad_(False)
        self.step = 0
        self.model, self.opt = self.accelerator.prepare(self.model, self.opt)

    def save(self, milestone):
        if not self.accelerator.is_local_main_process:
            return
        torch.save(
            {"model": self.accelerator.get_state_dict(self.model), "step": self.step}, f"model-{milestone}.pt"
        )

    def train(self):
        while self.step < self.steps:
            self.model.train()
            total = 0.0
            for _ in range(self.accumulate_every):
                (data,) = next(self.dl)
                with self.accelerator.autocast():
                    loss = self.model(data)
                    loss = loss / self.accumulate_every
                    total += loss.item()
                self.accelerator.backward(loss)
            self.accelerator.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
            self.accelerator.wait_for_everyone()
            self.opt.step()
            self.opt.zero_grad()
            self.step += 1
        self.save("last")
        unwrapped = self.accelerator.unwrap_model(self.model)
        unwrapped.eval()
        with torch.no_grad():
            print(unwrapped(torch.zeros(1, 5)), total)


trainer = Trainer(Denoiser(5), TensorDataset(torch.randn(16, 5)))
trainer.train()
