"""Tempting: hidden state carried across batches, repackaged by a helper, manual SGD on `.data` without an optimizer."""

import torch
from torch import nn


class RNNModel(nn.Module):
    def __init__(self, vocabulary, width, layers, dropout=0.5):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, width, layers, dropout=dropout)
        self.decoder = nn.Linear(width, vocabulary)
        self.decoder.weight = self.encoder.weight
        self.vocabulary, self.layers, self.width = vocabulary, layers, width
        self.init_weights()

    def init_weights(self):
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(tokens)), hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.vocabulary)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.layers, bsz, self.width), weight.new_zeros(self.layers, bsz, self.width)


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


criterion = nn.NLLLoss()


def evaluate(model, source, bptt):
    model.eval()
    total_loss = 0.0
    hidden = model.init_hidden(10)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, bptt):
            data, targets = source[i : i + bptt], source[i + 1 : i + 1 + bptt].view(-1)
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(source) - 1)


def train(model, source, bptt, lr, clip):
    model.train()
    total_loss = 0.0
    hidden = model.init_hidden(20)
    for batch, i in enumerate(range(0, source.size(0) - 1, bptt)):
        data, targets = source[i : i + bptt], source[i + 1 : i + 1 + bptt].view(-1)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total_loss += loss.item()
        if batch % 200 == 0 and batch > 0:
            print(total_loss / 200)
            total_loss = 0.0
