"""A character GRU with truncated backpropagation: the state is carried on, detached."""

import torch
from torch import nn

torch.manual_seed(0)
text = "the quick brown fox jumps over the lazy dog. " * 60
vocab = sorted(set(text))
stoi = {c: i for i, c in enumerate(vocab)}
data = torch.tensor([stoi[c] for c in text])
B, T = 8, 16
n = len(data) // B
data = data[: n * B].view(B, n)


class CharRNN(nn.Module):
    def __init__(self, v, h=48):
        super().__init__()
        self.embed = nn.Embedding(v, 24)
        self.rnn = nn.GRU(24, h, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(h, v)

    def forward(self, x, state=None):
        z, state = self.rnn(self.embed(x), state)
        return self.out(z), state

    @torch.no_grad()
    def generate(self, start, length):
        x = torch.tensor([[stoi[start]]])
        state = None
        out = start
        for _ in range(length):
            logits, state = self(x, state)
            x = torch.multinomial(logits[:, -1].softmax(-1), 1)
            out += vocab[x.item()]
        return out


model = CharRNN(len(vocab))
opt = torch.optim.Adam(model.parameters(), 3e-3)
for _epoch in range(4):
    model.train()
    state = None
    for i in range(0, n - T - 1, T):
        x, y = data[:, i : i + T], data[:, i + 1 : i + T + 1]
        logits, state = model(x, state)
        state = state.detach()
        loss = nn.functional.cross_entropy(logits.reshape(-1, len(vocab)), y.reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    model.eval()
    print(loss.item(), model.generate("t", 20))
