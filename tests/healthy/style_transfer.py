"""Tempting: an image is what is trained, a network in evaluation mode under gradients, a closure, an in-place clamp."""

import torch
from torch import nn
from torchvision.models import VGG19_Weights, vgg19

cnn = vgg19(weights=VGG19_Weights.DEFAULT).features.eval()
for parameter in cnn.parameters():
    parameter.requires_grad_(False)


def gram(x):
    a, b, c, d = x.size()
    features = x.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, x):
        self.loss = nn.functional.mse_loss(x, self.target)
        return x


def run(content, style, image, steps=300):
    model = nn.Sequential()
    losses = []
    for index, layer in enumerate(cnn.children()):
        if isinstance(layer, nn.ReLU):
            layer = nn.ReLU(inplace=False)
        model.add_module(str(index), layer)
        if index in (5, 10):
            target = ContentLoss(model(content))
            model.add_module(f"content_{index}", target)
            losses.append(target)
    image.requires_grad_(True)
    model.eval()
    model.requires_grad_(False)
    optimizer = torch.optim.LBFGS([image])
    wanted = gram(cnn(style)).detach()
    step = [0]
    while step[0] <= steps:

        def closure():
            with torch.no_grad():
                image.clamp_(0, 1)
            optimizer.zero_grad()
            model(image)
            loss = sum(part.loss for part in losses) + nn.functional.mse_loss(gram(cnn(image)), wanted)
            loss.backward()
            step[0] += 1
            return loss

        optimizer.step(closure)
    with torch.no_grad():
        image.clamp_(0, 1)
    return image
