import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.bn = nn.BatchNorm2d(2)
        self.fc = nn.Linear(2 * 6 * 6, 3)

    def forward(self, x):
        return self.fc(torch.flatten(torch.relu(self.bn(self.conv(x))), 1))


def run():
    data = TensorDataset(torch.randn(12, 1, 8, 8), torch.randint(0, 3, (12,)))
    train_loader, val_loader = DataLoader(data, batch_size=4), DataLoader(data, batch_size=6)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    criterion = nn.NLLLoss() if False else nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(net, optimizer, criterion, device="cpu")
    evaluator = create_supervised_evaluator(net, metrics={"loss": Loss(criterion)}, device="cpu")

    def log_validation(engine):
        evaluator.run(val_loader)
        print(evaluator.state.metrics)

    trainer.add_event_handler(Events.EPOCH_COMPLETED(every=1), log_validation)
    trainer.run(train_loader, max_epochs=2)


if __name__ == "__main__":
    run()
