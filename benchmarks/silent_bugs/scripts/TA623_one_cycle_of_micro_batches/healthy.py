import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader, settings):
        self.model, self.loader, self.settings = model, loader, settings
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=0.05, total_steps=self.settings["micro_batches"]
        )

    def update(self):
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()

    def run(self):
        gathered = 0
        for epoch in range(self.settings["epochs"]):
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(self.model(x), y)
                (loss / self.settings["gather"]).backward()
                gathered += 1
                if gathered == self.settings["gather"]:
                    self.update()
                    gathered = 0
            print(epoch, loss.item(), self.scheduler.get_last_lr()[0])


torch.manual_seed(0)
x = torch.randn(256, 8)
loader = DataLoader(TensorDataset(x, x[:, :4].argmax(1)), batch_size=16, shuffle=True)
settings = {"epochs": 5, "gather": 2, "micro_batches": 5 * len(loader) // 2}
Trainer(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)), loader, settings).run()
