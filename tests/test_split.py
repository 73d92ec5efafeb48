"""What is found in one file is found in several, and no more: the pages and cases, split as people write programs."""

import pytest
from split import Found, Part, found, split

RECALL = 0.95

_PREPARED = (
    "the length of the schedule is marked, and in another file the statement that prepares the schedule"
)
_TRAINER = "the collator that reads the key is marked, and in another file the trainer that is given it"
_NOT_CALLED = "the script turns gradients off, and calls no function of the file where it is marked"
TRUE_IN_SEVERAL = {
    "TA613-inference-with-gradient: Gradients are off in the whole file [7], line 10: TA613: outputs = model(inputs)": _NOT_CALLED,
    "TA613-inference-with-gradient: Frozen parameters [8], line 11: TA613: outputs = model(inputs)": _NOT_CALLED,
    "TA662-unscaled-schedule-under-accelerate: A helper that makes a schedule of torch [3], line 14: TA662: "
    "self.schedule = self.accelerator.prepare(one_cycle(self.optimizer, self.loader, epochs, 0.5))": _PREPARED,
    "TA668-column-dropped-before-collator: A loss with weights [3], line 23: TA668: "
    'Weighted(model=Model(), args=TrainingArguments("out", num_train_epochs=1)).train()': _TRAINER,
    "TA668-column-dropped-before-collator: Bad [1], line 23: TA668: "
    "trainer = Trainer(model=Model(), args=args, data_collator=collate)": _TRAINER,
    "TA668-column-dropped-before-collator: A collator class, and an own model [2], line 29: TA668: "
    'trainer = Trainer(model, TrainingArguments("out"), data_collator=Collate(0), train_dataset=rows)': _TRAINER,
    "TA668-another-style: A loss reads a column behind a collator of transformers, and the settings name the labels [1], line 19: TA668: "
    "Rated(model=model, args=TrainingArguments(**options), train_dataset=rows, data_collator=collator).train()": _TRAINER,
    "TA668-from-the-page: Written from the page alone, in another style [2], line 56: TA668: trainer = WeightedTrainer(": _TRAINER,
    "TA668-unseen: A weight of each example, read by the loss [1], line 18: TA668: "
    "ConfidenceTrainer(model=model, args=args, train_dataset=dataset).train()": _TRAINER,
}
"""Lines, as `split.Line` writes them, that are rightly reported in several files alone, each with the reason."""


@pytest.fixture(scope="module")
def result() -> Found:
    return found()


def test_what_is_found_in_one_file_is_found_in_several(result: Found) -> None:
    missed = "\n".join(map(str, result.missed))
    assert result.recall >= RECALL, (
        f"{len(result.missed)} of {len(result.marked)} lines are missed:\n{missed}"
    )


def test_splitting_a_program_causes_no_finding(result: Found) -> None:
    lines = set(map(str, result.extra))
    assert lines == TRUE_IN_SEVERAL.keys()


def test_a_program_is_split_into_what_people_would_write() -> None:
    code = """\
import torch
from torch import nn
from torch.utils.data import Dataset

RATE = 0.1


class Net(nn.Module):
    pass


class Rows(Dataset):
    pass


# one pass
def step(net):
    return torch.ones(3)


def rate():
    return RATE


step(Net())
"""
    files = split(code)
    assert {path: part.text for path, part in files.items()} == {
        "models.py": "from torch import nn\nclass Net(nn.Module):\n    pass\n",
        "data.py": "from torch.utils.data import Dataset\nclass Rows(Dataset):\n    pass\n",
        "engine.py": "import torch\n# one pass\ndef step(net):\n    return torch.ones(3)\n",
        "train.py": "from data import Rows\nfrom engine import step\nfrom models import Net\n"
        "RATE = 0.1\ndef rate():\n    return RATE\nstep(Net())\n",
    }
    assert files["train.py"].lines == [0, 0, 0, 5, 21, 22, 25]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import torch\n\n\ndef step(net):\n    return torch.ones(3)\n", "one function"),
        ("from torch import *\n\n\ndef f():\n    pass\n\n\nf()\n", "names from anywhere"),
        ("RATE = 0.1\n\n\ndef f():\n    return RATE\n\n\nf()\n", "a variable of the script"),
    ],
)
def test_a_program_that_belongs_together_stays_one_file(code: str, why: str) -> None:
    assert split(code) == {"train.py": Part(code, [*range(1, code.count("\n") + 1)])}, why
