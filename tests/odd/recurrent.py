# An LSTM over packed sequences, with its state carried on, and CTC.
import torch
from told import told
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(0)
lstm, head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 5)
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
state = None
for _ in range(5):
    out, state = lstm(pack_padded_sequence(torch.randn(2, 6, 4), [6, 4], batch_first=True), state)
    state = tuple(each.detach() for each in state)
    out, lengths = pad_packed_sequence(out, batch_first=True)
    scores = head(out).log_softmax(2).transpose(0, 1)
    optimizer.zero_grad()
    nn.functional.ctc_loss(scores, torch.tensor([[1, 2], [3, 4]]), lengths, torch.tensor([2, 2])).backward()
    optimizer.step()
told(lstm, head)
