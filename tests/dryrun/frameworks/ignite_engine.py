import torch
from ignite.engine import Engine, Events
from ignite.metrics import Accuracy
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
criterion = nn.CrossEntropyLoss()
data = TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,)))
loader = DataLoader(data, batch_size=4, shuffle=True)
val_loader = DataLoader(data, batch_size=8)


def train_step(engine, batch):
    model.train()
    optimizer.zero_grad()
    x, y = batch
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def validation_step(engine, batch):
    model.eval()
    with torch.no_grad():
        x, y = batch
        return model(x), y


trainer = Engine(train_step)
evaluator = Engine(validation_step)
Accuracy().attach(evaluator, "accuracy")


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    evaluator.run(val_loader)
    print(engine.state.epoch, evaluator.state.metrics["accuracy"])


@trainer.on(Events.EPOCH_COMPLETED)
def schedule():
    scheduler.step()


trainer.run(loader, max_epochs=2)
