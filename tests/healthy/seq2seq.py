"""Tempting: a decoder run step by step, a loss summed over steps with its graph on purpose, teacher forcing by chance."""

import random

import torch
from torch import nn
from torch.nn import functional as F


class Decoder(nn.Module):
    def __init__(self, hidden, output):
        super().__init__()
        self.embedding = nn.Embedding(output, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, output)

    def forward(self, token, hidden):
        output, hidden = self.gru(F.relu(self.embedding(token)), hidden)
        return self.out(output[:, -1]), hidden


def train(encoder, decoder, pairs, criterion, e_optimizer, d_optimizer, epochs):
    for epoch in range(epochs):
        for source, target in pairs:
            e_optimizer.zero_grad()
            d_optimizer.zero_grad()
            loss = 0
            _, hidden = encoder(source)
            token = torch.zeros(source.size(0), 1, dtype=torch.long)
            outputs = []
            for t in range(target.size(1)):
                output, hidden = decoder(token, hidden)
                outputs.append(output)
                loss += criterion(output, target[:, t])
                if random.random() < 0.5:
                    token = target[:, t : t + 1]
                else:
                    token = output.topk(1)[1].detach()
            outputs = torch.stack(outputs, dim=1)
            loss.backward()
            e_optimizer.step()
            d_optimizer.step()
            print(loss.item() / target.size(1), outputs.argmax(-1).eq(target).float().mean().item())
