"""Trains a bigram model and generates from it."""

import torch
from torch import nn


def generate(model, prompt, max_new_tokens, context=8):
    limit = len(prompt) + max_new_tokens  # bug: TA318 (static)
    prompt = prompt[-context:]
    text = prompt.clone()
    with torch.no_grad():
        while len(text) < limit:
            following = model(text[-1:]).argmax(dim=1)
            text = torch.cat([text, following])
    return text[len(prompt) :]


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(30):
        tokens = torch.randint(20, (64,))
        loss = nn.functional.cross_entropy(model(tokens), (tokens + 1) % 20)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    new = generate(model, torch.arange(20), max_new_tokens=5)
    print(len(new), new.tolist())


if __name__ == "__main__":
    main()
