import torch
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    get_scheduler,
)


def tiny(path):
    config = DistilBertConfig(vocab_size=20, dim=8, n_layers=1, n_heads=2, hidden_dim=8, num_labels=2)
    DistilBertForSequenceClassification(config).save_pretrained(path)
    return path


def collate(rows):
    return {
        "input_ids": torch.stack([ids for ids, _ in rows]),
        "labels": torch.tensor([label for _, label in rows]),
    }


def evaluate(model, loader):
    model.eval()
    hits = 0
    for batch in loader:
        with torch.no_grad():
            outputs = model(**batch)
        hits += (outputs.logits.argmax(dim=-1) == batch["labels"]).sum().item()
    return hits


def main():
    model = AutoModelForSequenceClassification.from_pretrained(tiny("tiny-distilbert"))
    for parameter in model.base_model.parameters():
        parameter.requires_grad = False
    rows = [(torch.randint(0, 20, (7,)), index % 2) for index in range(16)]
    train_loader = DataLoader(rows, batch_size=4, shuffle=True, collate_fn=collate)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    lr_scheduler = get_scheduler("linear", optimizer=optimizer, num_warmup_steps=0, num_training_steps=8)
    for epoch in range(2):
        model.train()
        for batch in train_loader:
            outputs = model(**batch)
            loss = outputs.loss
            loss.backward()
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
        print(epoch, evaluate(model, train_loader))


if __name__ == "__main__":
    main()
