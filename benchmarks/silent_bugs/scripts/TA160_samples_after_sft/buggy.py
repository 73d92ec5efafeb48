"""Supervised fine-tuning on advice, and some samples at the end."""

import random

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

TROUBLES = {
    "i am tired": "go to bed early",
    "i am hungry": "eat some bread",
    "i am late": "take the bus",
    "i am cold": "put on a coat",
}


def make_tokenizer():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["<unk>", "<pad>", "</s>", "<|user|>", "<|assistant|>"]
    core.train_from_iterator(
        [*TROUBLES, *TROUBLES.values()], trainers.WordLevelTrainer(special_tokens=special)
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", pad_token="<pad>", eos_token="</s>"
    )
    tokenizer.chat_template = (
        "{% for message in messages %}{{ '<|' + message['role'] + '|> ' + message['content'] + ' ' + eos_token + ' ' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
    )
    return tokenizer


def conversations(count):
    dice = random.Random(5)
    rows = []
    for _ in range(count):
        trouble, advice = dice.choice(list(TROUBLES.items()))
        rows.append([{"role": "user", "content": trouble}, {"role": "assistant", "content": advice}])
    return Dataset.from_dict({"messages": rows})


def sample(model, tokenizer, trouble):
    ids = tokenizer(trouble, return_tensors="pt").input_ids
    with torch.no_grad():
        out = model.generate(  # bug: TA160 (runtime)
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False
        )
    return tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True)


def main():
    set_seed(16)
    tokenizer = make_tokenizer()
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    settings = SFTConfig(
        output_dir="advice",
        max_length=32,
        per_device_train_batch_size=16,
        num_train_epochs=3,
        learning_rate=3e-3,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    trainer = SFTTrainer(
        model=model, args=settings, train_dataset=conversations(256), processing_class=tokenizer
    )
    trainer.train()
    model.eval()
    for trouble in TROUBLES:
        print(trouble, "->", sample(model, tokenizer, trouble))


if __name__ == "__main__":
    main()
