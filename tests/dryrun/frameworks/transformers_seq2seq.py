import torch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration

torch.manual_seed(0)
config = T5Config(
    vocab_size=24, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=0
)
model = T5ForConditionalGeneration(config)


def pairs(count):
    return [
        {"input_ids": torch.randint(1, 24, (6,)), "labels": torch.randint(1, 24, (5,))} for _ in range(count)
    ]


args = Seq2SeqTrainingArguments(
    output_dir="t5",
    num_train_epochs=1,
    per_device_train_batch_size=4,
    predict_with_generate=False,
    lr_scheduler_type="cosine",
    warmup_steps=1,
    report_to=[],
    use_cpu=True,
    save_strategy="no",
    disable_tqdm=True,
)
trainer = Seq2SeqTrainer(model=model, args=args, train_dataset=pairs(12), eval_dataset=pairs(4))
result = trainer.train()
metrics = trainer.evaluate()
predictions = trainer.predict(pairs(4))
print(result.training_loss, metrics["eval_loss"], type(predictions.predictions))
