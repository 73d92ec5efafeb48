import functools

import torch
import torch.nn.functional as F
from torch import nn


class WordTagger(nn.Module):
    """Tags each word by itself and its neighbours."""

    def __init__(self, words, tags, width=16):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(2 * width, tags)

    def forward(self, sentence):
        return self.tag(self.lstm(self.embed(sentence))[0])


def sentences(batch, length=10, words=20):
    sentence = torch.randint(words, (batch, length))
    following = sentence.roll(-1, dims=1)
    return sentence, (sentence > words // 2).long() + (following > words // 2).long()


def clamp_gradient(scaler, limit, gradient):
    bound = limit * scaler.get_scale()
    return gradient.clamp(-bound, bound)


def build(lr, limit):
    model = WordTagger(words=20, tags=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for parameter in model.parameters():
        parameter.register_hook(functools.partial(clamp_gradient, scaler, limit))
    return model, optimizer, scaler


def main(steps=150, lr=0.3, limit=0.01):
    torch.manual_seed(97)
    model, optimizer, scaler = build(lr, limit)
    losses = []
    for step in range(steps):
        sentence, tags = sentences(32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(sentence)
        loss = F.cross_entropy(logits.float().flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        if (step + 1) % 30 == 0:
            print(f"step {step + 1}: {sum(losses[-30:]) / 30:.4f}")


main()
