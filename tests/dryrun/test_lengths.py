"""How many batches an epoch has, where the program shows it: what a dry run counts is what torch gives."""

import runpy
from pathlib import Path

import pytest

from ta_lint.core.datasets import samples_of
from ta_lint.dryrun.dryrun import dry_run

HEAD = """\
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset, random_split

data = TensorDataset(torch.randn(103, 4))
"""

DATASETS = {
    "all of it": "data",
    "a part": "Subset(data, range(37))",
    "a part by a list": "Subset(data, [5, 8, 1])",
    "two together": "ConcatDataset([data, Subset(data, range(20))])",
    "a share of so many": "random_split(data, [80, 23])[0]",
    "what is left": "random_split(data, [80, len(data) - 80])[1]",
    "a fraction, with one more of the rest": "random_split(data, [0.5, 0.3, 0.2])[0]",
    "a part of a part": "Subset(random_split(data, [80, 23])[1], range(9))",
}


def epochs(folder: Path, code: str) -> list[int | None]:
    """How many batches the epochs of a program have."""
    script = folder / "train.py"
    script.write_text(code, encoding="utf-8")
    return [event.detail["length"] for event in dry_run(str(script)).events if event.action == "epoch"]


@pytest.mark.parametrize("what", DATASETS)
def test_an_epoch_has_as_many_batches_as_torch_gives(what: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = f"{HEAD}loader = DataLoader({DATASETS[what]}, batch_size=4)\n"
    given = epochs(tmp_path, f"{code}for batch in loader:\n    pass\n")
    assert given == [len(runpy.run_path(str(tmp_path / "train.py"))["loader"])]


@pytest.mark.parametrize(("choice", "batches"), [("", 1875), ("train=False, ", 313), ("train=which, ", None)])
def test_a_dataset_of_torchvision_has_its_samples(choice: str, batches: int | None, tmp_path: Path) -> None:
    code = (
        "from torch.utils.data import DataLoader\nfrom torchvision.datasets import MNIST\nwhich = input() == 'y'\n"
        f"for batch in DataLoader(MNIST('folder', {choice}download=True), batch_size=32):\n    pass\n"
    )
    assert epochs(tmp_path, code) == [batches]


def test_a_dataset_whose_data_the_program_cuts_has_an_unknown_length(tmp_path: Path) -> None:
    code = (
        "from torch.utils.data import DataLoader\nfrom torchvision.datasets import CIFAR10\ndata = CIFAR10('folder')\n"
        "data.data = data.data[:100]\nfor batch in DataLoader(data, batch_size=32):\n    pass\n"
    )
    assert epochs(tmp_path, code) == [None]


def test_the_default_part_of_a_dataset_stands_first() -> None:
    assert next(iter(samples_of("torchvision.datasets.SVHN").items())) == ("train", 73257)
    assert samples_of("torchvision.datasets.MNIST") == {True: 60000, False: 10000}
    assert samples_of("torchvision.datasets.ImageFolder") == {}
