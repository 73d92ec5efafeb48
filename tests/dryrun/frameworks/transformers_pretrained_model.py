from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import PretrainedConfig, PreTrainedModel, get_cosine_schedule_with_warmup
from transformers.utils import ModelOutput


class TinyConfig(PretrainedConfig):
    model_type = "tiny"

    def __init__(self, width=8, depth=2, vocabulary=12, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.depth = depth
        self.vocabulary = vocabulary


@dataclass
class TinyOutput(ModelOutput):
    loss: torch.FloatTensor = None
    logits: torch.FloatTensor = None


class TinyForTokens(PreTrainedModel):
    config_class = TinyConfig
    base_model_prefix = "tiny"

    def __init__(self, config):
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList([nn.Linear(config.width, config.width) for _ in range(config.depth)])
        self.head = nn.Linear(config.width, config.vocabulary)
        self.post_init()

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            module.weight.data.normal_(mean=0.0, std=0.02)

    def forward(self, input_ids, labels=None):
        hidden = self.embedding(input_ids)
        for block in self.blocks:
            hidden = hidden + block(hidden).relu()
        logits = self.head(hidden)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))
        return TinyOutput(loss=loss, logits=logits)


def train():
    model = TinyForTokens(TinyConfig(width=4))
    loader = DataLoader(torch.randint(0, 12, (16, 5)), batch_size=4, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = get_cosine_schedule_with_warmup(optimizer, 2, len(loader) * 2)
    model.train()
    for epoch in range(2):
        for batch in loader:
            outputs = model(input_ids=batch, labels=batch)
            outputs.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    model.save_pretrained("tiny")
    again = TinyForTokens.from_pretrained("tiny")
    with torch.no_grad():
        print(again(torch.zeros(1, 3, dtype=torch.long)).logits.shape)


train()
