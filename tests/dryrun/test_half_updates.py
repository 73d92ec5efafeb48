"""The optimizers that are to step weights in half precision, as the dry run sees them."""

from pathlib import Path
from textwrap import dedent

import pytest

from ta_lint.dryrun.collect.half_updates import half_updates_of
from ta_lint.dryrun.dryrun import dry_run

START = """
    import torch
    from accelerate import Accelerator
    from torch import nn
    from transformers import AutoModel

    model = nn.Linear(4, 1).bfloat16()
"""
BUILT = "\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


def rates_in(folder: Path, program: str) -> list[float]:
    """The learning rates of weights in half precision."""
    path = folder / "example.py"
    path.write_text(dedent(START) + program, "utf-8")
    return [one.rate for one in half_updates_of(dry_run(str(path)).events)]


@pytest.mark.parametrize(
    "program",
    [
        BUILT,
        f"model = AutoModel.from_pretrained('bert', dtype='bfloat16'){BUILT}",
        f"model = AutoModel.from_pretrained('bert', torch_dtype=torch.float16).cuda(){BUILT}",
        "optimizer = torch.optim.SGD([{'params': [p for n, p in model.named_parameters() if input(n)]}], lr=0.1)",
    ],
)
def test_weights_that_are_in_half_precision_when_the_optimizer_is_built(program: str, tmp_path: Path) -> None:
    assert rates_in(tmp_path, program) == [0.1]


@pytest.mark.parametrize(
    "program",
    [
        f"model.float(){BUILT}",
        f"{BUILT}model.float()",
        f"model = nn.Linear(4, 1){BUILT}model.half()",
        f"model.requires_grad_(False){BUILT}",
        f"{BUILT}model, optimizer = Accelerator().prepare(model, optimizer)",
        f"if input():\n    model.float(){BUILT}",
    ],
)
def test_weights_that_are_or_become_wider(program: str, tmp_path: Path) -> None:
    assert rates_in(tmp_path, program) == []
