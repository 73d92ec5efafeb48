"""A GPT-2 of characters."""

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel

PLAY = (
    """the curtain rises on a room with two chairs and one lamp. enter the postman, who brings a letter.
nobody is at home. he sits down and waits, and reads the letter aloud to the lamp. exit the lamp. """
    * 12
)


class Characters(Dataset):
    def __init__(self, text, block=32):
        letters = sorted(set(text))
        self.vocabulary = len(letters)
        self.ids = torch.tensor([letters.index(letter) for letter in text])
        self.block = block

    def __len__(self):
        return (len(self.ids) - 1) // self.block

    def __getitem__(self, index):
        chunk = self.ids[index * self.block : (index + 1) * self.block + 1]
        return chunk[:-1], chunk[1:]


def main():
    torch.manual_seed(153)
    data = Characters(PLAY)
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=data.vocabulary,
            n_positions=64,
            n_embd=32,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for epoch in range(8):
        for x, y in loader:
            loss = model(input_ids=x, labels=y).loss  # bug: TA153
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
