"""Adding problem for a recurrent network."""
import torch
from torch import nn


class Adder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.RNN(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, sequence):
        _, last = self.rnn(sequence)
        return self.out(last[-1])


def problem(batch, length):
    """Numbers and marks: the answer is the sum of the two marked numbers."""
    numbers = torch.rand(batch, length) - 0.5
    marks = torch.zeros(batch, length)
    first, second = torch.randint(length // 2, (batch, 1)), torch.randint(length // 2, length, (batch, 1))
    marks.scatter_(1, first, 1.0).scatter_(1, second, 1.0)
    return torch.stack([numbers, marks], dim=2), (numbers * marks).sum(1, keepdim=True)


class Learner:
    def __init__(self, hidden=24, lr=0.05, limit=0.05):
        self.model = Adder(hidden)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.limit = limit

    def learn(self, sequence, answer):
        loss = nn.functional.mse_loss(self.model(sequence), answer)
        self.optimizer.zero_grad()
        nn.utils.clip_grad_value_(self.model.parameters(), self.limit)  # bug: TA604
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main(steps=250):
    torch.manual_seed(85)
    learner = Learner()
    losses = []
    for step in range(steps):
        losses.append(learner.learn(*problem(batch=32, length=8)))
        if (step + 1) % 50 == 0:
            print(f"step {step + 1}: {sum(losses[-50:]) / 50:.4f}")


if __name__ == "__main__":
    main()
