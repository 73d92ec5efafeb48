"""Reviews, good or bad, by a published BERT that is fine-tuned in a loop of our own."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, BertModel

FOLDER = "bert-tiny"


def download():
    config = BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    BertModel(config).save_pretrained(FOLDER)


def reviews(count, length=24):
    ids = torch.randint(5, 100, (count, length))
    good = (ids < 20).sum(1) > (ids > 84).sum(1)
    lengths = torch.randint(10, length, (count, 1))
    mask = (torch.arange(length) < lengths).long()
    return TensorDataset(ids * mask, mask, good.long())


def accuracy(model, loader):
    right = count = 0
    with torch.inference_mode():
        for ids, mask, good in loader:
            said = model(input_ids=ids, attention_mask=mask).logits.argmax(-1)
            right += (said == good).sum().item()
            count += len(good)
    return right / count


def main():
    torch.manual_seed(152)
    download()
    model = BertForSequenceClassification.from_pretrained(FOLDER, num_labels=2)
    train = DataLoader(reviews(512), batch_size=16, shuffle=True)
    held_out = DataLoader(reviews(128), batch_size=64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        model.train()
        for ids, mask, good in train:
            optimizer.zero_grad()
            loss = model(input_ids=ids, attention_mask=mask, labels=good).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        print(f"epoch {epoch}: accuracy {accuracy(model, held_out):.2%}")


if __name__ == "__main__":
    main()
