"""
python examples/runtime/transformers_run.py

Trains a tiny GPT-2, built from its configuration, under the Transformers `Trainer`. Its weights are in bfloat16, as large
models are loaded to save memory, and there a weight near 1 has no neighbour closer than 0.004: the steps of the norms
round to nothing. Under fifteen seconds on one CPU core; needs torch, transformers and accelerate.
"""

import tempfile

import torch
import transformers
from torch.utils.data import Dataset

import ta_runtime

ta_runtime.enable(every_n_steps=20)

transformers.set_seed(0)
transformers.logging.set_verbosity_error()


class Counting(Dataset):
    """Sequences that count upwards in steps of 1 to 4; the first two numbers, the question, are not to be learned."""

    def __len__(self):
        return 512

    def __getitem__(self, i):
        ids = (i * 7 + (i % 4 + 1) * torch.arange(16)) % 64
        labels = ids.clone()
        labels[:2] = -100
        return {"input_ids": ids, "labels": labels}


config = transformers.GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2)
# cured: model = transformers.GPT2LMHeadModel(config)
model = transformers.GPT2LMHeadModel(config).to(torch.bfloat16)

trainer = transformers.Trainer(
    model=model,
    args=transformers.TrainingArguments(
        output_dir=tempfile.gettempdir(),
        per_device_train_batch_size=16,
        num_train_epochs=6,
        learning_rate=1e-3,
        use_cpu=True,
        disable_tqdm=True,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
    ),
    train_dataset=Counting(),
)
trainer.remove_callback(transformers.PrinterCallback)
result = trainer.train()  # runtime: TA511
print(f"{result.global_step} steps, training loss {result.training_loss:.4f}")
