import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
model = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=8)
dataset = TensorDataset(torch.randn(32, 6), torch.randint(0, 3, (32,)))
train_loader = DataLoader(dataset, batch_size=8, shuffle=True)
eval_loader = DataLoader(dataset, batch_size=16)
model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
    model, optimizer, train_loader, eval_loader, scheduler
)
loss_function = nn.CrossEntropyLoss()
for epoch in range(2):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = loss_function(model(inputs), targets)
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
    model.eval()
    correct = torch.tensor(0)
    for inputs, targets in eval_loader:
        with torch.inference_mode():
            predictions = model(inputs).argmax(dim=-1)
        predictions, targets = accelerator.gather_for_metrics((predictions, targets))
        correct = correct + (predictions == targets).sum()
    if accelerator.is_main_process:
        accelerator.print(epoch, correct)
