# as in Accelerate's own examples: accumulation, a scheduler, evaluation between epochs
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup, set_seed

set_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
config = BertConfig(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    num_labels=2,
)
model = BertForSequenceClassification(config)
ids = torch.randint(5, 100, (320, 12))
dataset = TensorDataset(ids, torch.ones_like(ids), (ids[:, 1] > 50).long())
train_dataloader = DataLoader(dataset, shuffle=True, batch_size=8, drop_last=True)
eval_dataloader = DataLoader(dataset, shuffle=False, batch_size=32)
optimizer = torch.optim.AdamW(params=model.parameters(), lr=2e-4)
lr_scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=10, num_training_steps=60)
model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler
)
for _epoch in range(3):
    model.train()
    for input_ids, attention_mask, labels in train_dataloader:
        with accelerator.accumulate(model):
            output = model(input_ids=input_ids, attention_mask=attention_mask, labels=labels)
            accelerator.backward(output.loss)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
    model.eval()
    for input_ids, attention_mask, labels in eval_dataloader:
        with torch.no_grad():
            outputs = model(input_ids=input_ids, attention_mask=attention_mask)
        accelerator.gather_for_metrics((outputs.logits.argmax(dim=-1), labels))
