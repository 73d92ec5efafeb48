"""Secrets in the command line that a run keeps."""

import sys
from pathlib import Path

import pytest

from ta_runtime.masking import command, masked
from ta_runtime.runs import Run, RunWriter


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("python train.py --api-key abc123", "abc123"),
        ("python train.py --hf-token=open-sesame --lr 0.1", "open-sesame"),
        ("python -m train logger.wandb_api_key=abc123 lr=0.1", "abc123"),
        ("python train.py --logger.init_args.password hunter2", "hunter2"),
        ("python train.py +api_key=abc123 ++logger.token=abc123 logger/pwd=abc123", "abc123"),
        ("python train.py https://me:hunter2@tracking.example.org/", "hunter2"),
        ("python train.py hf_" + "aB3" * 11, "aB3" * 11),
    ],
)
def test_a_secret_of_the_command_line_is_masked(line: str, secret: str) -> None:
    words = line.split()
    kept = list(command(words))
    assert secret not in " ".join(kept)
    assert "<masked " in " ".join(kept)
    assert len(kept) == len(words)
    assert kept[:2] == words[:2]


@pytest.mark.parametrize(
    "line",
    [
        "python train.py --tokenizer gpt2 --max-tokens 2048 --num-kv-heads 4 --pad-token <pad> --eos_token_id 2",
        "python train.py --token 7 --key-padding --author me --api-key --lr 0.1 monkey=1",
        "torchrun --rdzv-endpoint host:29500 runs/hf_bert_base_uncased_finetune_2026/train_resnet50_lr0.1_bs256_seed0.py",
        "python train.py --use-auth-token true --data s3://bucket/imagenet-2012-train-shards-000000",
    ],
)
def test_what_is_no_secret_stays_as_it_is(line: str) -> None:
    assert list(command(line.split())) == line.split()


def test_equal_secrets_are_masked_alike_so_that_runs_can_be_compared() -> None:
    assert list(command(["--password", "hunter2"])) == ["--password", masked("hunter2")]
    assert masked("hunter2") == masked("hunter2") != masked("hunter3")


def test_a_run_keeps_its_command_without_the_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "train.py", "--api-key", "hunter2", "--lr", "0.1"])
    writer = RunWriter(tmp_path / "run")
    writer.begin()
    assert Run(tmp_path / "run").about[0]["command"] == [
        "python", "train.py", "--api-key", masked("hunter2"), "--lr", "0.1"
    ]  # fmt: skip
    assert "hunter2" not in "".join(path.read_text() for path in tmp_path.rglob("*.json"))
