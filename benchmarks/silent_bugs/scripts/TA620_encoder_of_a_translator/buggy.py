"""Sequence to sequence: write the symbols in reverse."""

import torch
import torch.nn.functional as F
from torch import nn

SYMBOLS, LENGTH, START = 7, 5, 7


class EncoderRNN(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, width)
        self.gru = nn.GRU(width, width, batch_first=True)

    def forward(self, source):
        return self.gru(self.embedding(source))


class DecoderRNN(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS + 1, width)
        self.gru = nn.GRU(2 * width, width, batch_first=True)
        self.query = nn.Linear(width, width)
        self.out = nn.Linear(2 * width, SYMBOLS)

    def forward(self, token, hidden, memory):
        scores = torch.einsum("bw,blw->bl", self.query(hidden[-1]), memory) / memory.shape[-1] ** 0.5
        context = torch.einsum("bl,blw->bw", scores.softmax(1), memory)
        output, hidden = self.gru(torch.cat([self.embedding(token), context], 1)[:, None], hidden)
        return self.out(torch.cat([output[:, 0], context], 1)), hidden


def train_step(source, target, encoder, decoder, encoder_optimizer, decoder_optimizer):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    memory, hidden = encoder(source)
    token, loss = torch.full((len(source),), START), 0.0
    for position in range(LENGTH):
        logits, hidden = decoder(token, hidden, memory)
        loss = loss + F.cross_entropy(logits, target[:, position])
        token = target[:, position]
    loss.backward()
    nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
    nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
    decoder_optimizer.step()
    return loss.item() / LENGTH


def train_iterations(encoder, decoder, iterations, print_every=40, lr=1e-2):
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=lr)  # bug: TA620
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=lr)
    print_loss_total = 0.0
    for iteration in range(1, iterations + 1):
        source = torch.randint(SYMBOLS, (48, LENGTH))
        print_loss_total += train_step(
            source, source.flip(1), encoder, decoder, encoder_optimizer, decoder_optimizer
        )
        if iteration % print_every == 0:
            print(f"{iteration} {print_loss_total / print_every:.4f}")
            print_loss_total = 0.0


if __name__ == "__main__":
    torch.manual_seed(204)
    train_iterations(EncoderRNN(24), DecoderRNN(24), 160)
