"""How many outputs the layer has that made a value."""

import libcst as cst
import pytest

from ta_lint.core.source import source_of
from ta_lint.facts import FileFacts
from ta_lint.facts.values.widths import Width

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, classes, count=1):
        super().__init__()
        self.one, self.some, self.default = nn.Linear(8, 1), nn.Linear(8, classes), nn.Linear(8, count)
        self.maps = nn.Conv2d(3, out_channels=2, kernel_size=1)
        self.body = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Dropout(0.1))

    def forward(self, x):
        return self.body(x)
"""


@pytest.mark.parametrize(
    ("expression", "width"),
    [
        ("self.one(x)", Width(1, -1)),
        ("torch.relu(self.one(x)).float()", Width(1, -1)),
        ("self.maps(x)", Width(2, 1)),
        ("self.body(x)", Width(4, -1)),
        ("Net(3)(x)", Width(4, -1)),
        ("self.some(x)", None),
        ("self.default(x)", None),
        ("self.one(x).view(1, -1)", None),
        ("self.one(x) if x else self.maps(x)", None),
        ("x", None),
    ],
)
def test_the_outputs_of_the_layer_behind_a_value(expression: str, width: Width | None) -> None:
    text = f"{MODEL}\n    def other(self, x):\n        use({expression})\n"
    facts = FileFacts.of(source_of("train.py", text.encode()))
    (use,) = [call for call in facts.tree.all(cst.Call) if facts.code(call.func) == "use"]
    assert facts.widths.of(use.args[0].value) == width
