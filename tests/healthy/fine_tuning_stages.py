"""Tempting: a frozen backbone in evaluation mode while the head trains, an optimizer made anew after unfreezing."""

import torch
from torch import nn
from torchvision import models

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = models.resnet18(weights="IMAGENET1K_V1")
for param in model.parameters():
    param.requires_grad = False
model.fc = nn.Linear(model.fc.in_features, 2)
model = model.to(device)
criterion = nn.CrossEntropyLoss()


def freeze_bn(module):
    if isinstance(module, nn.BatchNorm2d):
        module.eval()


def run(loader, optimizer, epochs, scheduler=None):
    for epoch in range(epochs):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
                model.apply(freeze_bn)
            else:
                model.eval()
            running_loss, running_corrects = 0.0, 0
            for inputs, labels in loader[phase]:
                inputs, labels = inputs.to(device), labels.to(device)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
            if phase == "train" and scheduler is not None:
                scheduler.step()
            epoch_acc = running_corrects.double() / len(loader[phase].dataset)
            print(running_loss, epoch_acc)


def both(loader):
    optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.01, momentum=0.9)
    run(loader, optimizer, 5)
    for param in model.parameters():
        param.requires_grad = True
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.1)
    run(loader, optimizer, 20, scheduler)
