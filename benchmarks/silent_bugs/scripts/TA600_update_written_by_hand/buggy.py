"""Softmax regression with nothing but tensors."""

import torch
import torch.nn.functional as F


def init_params(sizes, generator):
    params = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        weight = torch.randn(fan_out, fan_in, generator=generator) / fan_in**0.5
        params += [weight.requires_grad_(), torch.zeros(fan_out, requires_grad=True)]
    return params


def predict(params, x):
    layers = list(zip(params[::2], params[1::2]))
    for weight, bias in layers[:-1]:
        x = F.relu(F.linear(x, weight, bias))
    weight, bias = layers[-1]
    return F.linear(x, weight, bias)


def make_batch(size, generator):
    x = torch.randn(size, 6, generator=generator)
    return x, (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0.5).long()


def descend(params, velocity, lr, momentum):
    with torch.no_grad():
        for p, v in zip(params, velocity):
            v.mul_(momentum).add_(p.grad)
            p -= lr * v  # bug: TA600


def main(steps=240, lr=0.1, momentum=0.5):
    generator = torch.Generator().manual_seed(51)
    params = init_params([6, 32, 3], generator)
    velocity = [torch.zeros_like(p) for p in params]
    losses = []
    for step in range(steps):
        x, y = make_batch(64, generator)
        loss = F.cross_entropy(predict(params, x), y)
        loss.backward()
        descend(params, velocity, lr, momentum)
        losses.append(loss.item())
        if (step + 1) % 60 == 0:
            print(f"{step + 1}: {sum(losses[-60:]) / 60:.4f}")


main()
