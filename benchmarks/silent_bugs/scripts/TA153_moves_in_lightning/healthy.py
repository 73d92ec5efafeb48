"""Next moves of a knight on a board, as a language: Lightning around a causal model."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, GPTNeoXConfig

JUMPS = torch.tensor([[1, 2], [2, 1], [2, -1], [1, -2], [-1, -2], [-2, -1], [-2, 1], [-1, 2]])


def games(count, moves=14):
    """Squares of a board without borders, which ends where it begins."""
    place = torch.randint(8, (count, 2))
    squares = []
    jump = torch.randint(8, (count,))
    for _ in range(moves):
        squares.append(place[:, 0] * 8 + place[:, 1])
        place = (place + JUMPS[jump]) % 8
    return torch.stack(squares, 1)


class Moves(L.LightningModule):
    def __init__(self):
        super().__init__()
        config = GPTNeoXConfig(
            vocab_size=64,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=32,
            use_cache=False,
        )
        self.net = AutoModelForCausalLM.from_config(config)

    def training_step(self, squares, _):
        logits = self.net(input_ids=squares[:, :-1]).logits
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), squares[:, 1:])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


if __name__ == "__main__":
    L.seed_everything(8)
    loader = DataLoader(games(512), batch_size=16, shuffle=True)
    trainer = L.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Moves(), loader)
