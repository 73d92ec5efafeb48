# as in pytorch/examples: truncated back-propagation, tied weights, SGD by hand
import torch
from torch import nn
from torch.nn import functional as F


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp=32, nhid=32, nlayers=2, dropout=0.2):
        super().__init__()
        self.ntoken, self.nhid, self.nlayers = ntoken, nhid, nlayers
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (
            weight.new_zeros(self.nlayers, bsz, self.nhid),
            weight.new_zeros(self.nlayers, bsz, self.nhid),
        )


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


torch.manual_seed(0)
tokens = [3]
for _ in range(8 * 700):
    tokens.append((tokens[-1] * 7 + 3) % 50 if torch.rand(()) < 0.9 else int(torch.randint(0, 50, ())))
data = torch.tensor(tokens[: 8 * 700]).view(8, -1).t().contiguous()
model = RNNModel(50)
optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
criterion = nn.NLLLoss()
hidden = model.init_hidden(8)
for i in range(0, data.size(0) - 1 - 10, 10):
    hidden = repackage_hidden(hidden)
    output, hidden = model(data[i : i + 10], hidden)
    loss = criterion(output, data[i + 1 : i + 11].view(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
