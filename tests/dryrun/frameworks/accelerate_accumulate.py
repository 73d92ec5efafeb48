import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def training_function(config):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=config["accumulation"])
    set_seed(config["seed"])
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    loader = DataLoader(TensorDataset(torch.randn(24, 2, 8), torch.randn(24, 1)), batch_size=4)
    lr_scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    model, optimizer, loader, lr_scheduler = accelerator.prepare(model, optimizer, loader, lr_scheduler)
    for epoch in range(config["epochs"]):
        model.train()
        for step, batch in enumerate(loader):
            with accelerator.accumulate(model):
                output = model(batch[0])
                loss = F.mse_loss(output, batch[1])
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()


def main():
    training_function({"lr": 0.1, "epochs": 2, "seed": 1, "accumulation": 2})


if __name__ == "__main__":
    main()
