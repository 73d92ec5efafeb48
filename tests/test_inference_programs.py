"""Programs that build no optimizer: their forward passes are what is looked at."""

from pathlib import Path

import pytest
from observed import observed, watched

from ta_runtime import reports

SETUP = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
weights = Net().state_dict()
net = Net()
batches = DataLoader(TensorDataset(torch.randn(48, 4), torch.randint(3, (48,))), batch_size=8)
"""

HEALTHY = {
    "an evaluation": """\
net.load_state_dict(weights)
net.eval()
with torch.no_grad():
    right = sum((net(x).argmax(1) == y).sum().item() for x, y in batches)
""",
    "a service that answers one request at a time": """\
net.load_state_dict(weights)
net.eval()


@torch.inference_mode()
def answer(request):
    return net(request).softmax(-1).tolist()


for _ in range(40):
    answer(torch.randn(1, 4))
""",
    "text that is generated token by token": """\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(20, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 20)

    def forward(self, ids):
        return self.head(self.cell(self.embed(ids))[0])


model = Model().eval()
ids = torch.tensor([[1]])
with torch.no_grad():
    for _ in range(12):
        logits = model(ids)[:, -1]
        logits[:, 0] = -torch.inf
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
""",
    "Monte Carlo dropout": """\
net.load_state_dict(weights)
net.eval()
for module in net.modules():
    if isinstance(module, nn.Dropout):
        module.train()
with torch.no_grad():
    for x, _ in batches:
        spread = torch.stack([net(x).softmax(-1) for _ in range(5)]).std(0)
""",
    "Monte Carlo dropout of the whole model": """\
net.load_state_dict(weights)
net.train()
with torch.no_grad():
    for x, _ in batches:
        spread = torch.stack([net(x).softmax(-1) for _ in range(5)]).std(0)
""",
    "running statistics that are measured anew": """\
net.load_state_dict(weights)
torch.optim.swa_utils.update_bn(batches, net)
""",
    "what an output owes to its input": """\
net.load_state_dict(weights)
net.eval()
for x, y in batches:
    x.requires_grad_()
    net(x).gather(1, y[:, None]).sum().backward()
    saliency = x.grad.abs()
""",
    "a look at the shapes of a new model": """\
for size in (2, 4, 8):
    print(tuple(net(torch.zeros(size, 4)).shape))
""",
    "a new model that is timed": """\
with torch.no_grad():
    for _ in range(20):
        net(torch.zeros(8, 4))
""",
    "a training by hand": """\
net.load_state_dict(weights)
for x, y in batches:
    nn.functional.cross_entropy(net(x), y).backward()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
""",
    "weights that do not depend on the mode": """\
linear = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
linear.load_state_dict({name: value.clone() for name, value in linear.state_dict().items()})
with torch.no_grad():
    for x, _ in batches:
        linear(x)
""",
    "rows of padding that nobody reads": """\
layer = nn.TransformerEncoderLayer(8, 2, batch_first=True, dropout=0.0).eval()
mask = torch.zeros(4, 5, dtype=torch.bool)
mask[0] = True
with torch.no_grad():
    for _ in range(4):
        out = layer(torch.randn(4, 5, 8), src_key_padding_mask=mask)
""",
    "images with their channels last that are turned": """\
model = nn.Conv2d(3, 8, 3).eval()
with torch.no_grad():
    for _ in range(3):
        model(torch.rand(2, 32, 32, 3).permute(0, 3, 1, 2))
""",
}

WRONG = {
    "an evaluation that records a graph": (
        """\
net.load_state_dict(weights)
net.eval()
for x, y in batches:
    print((net(x).argmax(1) == y).sum().item())  # here
""",
        ["TA613"],
    ),
    "a prediction without eval()": (
        """\
net.load_state_dict(weights)
with torch.no_grad():
    for x, _ in batches:
        print(net(x).argmax(1))  # here
""",
        ["TA612"],
    ),
    "a prediction without eval() and without no_grad()": (
        """\
net.load_state_dict(weights)
for x, _ in batches:
    print(net(x).argmax(1))  # here
""",
        ["TA612", "TA613"],
    ),
    "an id that the table lacks": (
        """\
model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2)).eval()
with torch.no_grad():
    model(torch.tensor([[3, 10]]))  # here
""",
        ["TA305"],
    ),
    "images with their channels last": (
        """\
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval()
with torch.no_grad():
    model(torch.rand(2, 32, 40, 3))  # here
""",
        ["TA303"],
    ),
    "an input on another device": (
        """\
model = nn.Sequential(nn.Linear(4, 2)).eval()
with torch.no_grad():
    model(torch.randn(2, 4, device="meta"))  # here
""",
        ["TA300"],
    ),
    "half precision that overflows": (
        """\
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False, dtype=torch.bfloat16)  # here
        nn.init.constant_(self.first.weight, 3e38)

    def forward(self, x):
        return self.first(x).softmax(-1)


model = Wide().eval()
with torch.inference_mode():
    for _ in range(3):
        model(torch.ones(2, 4, dtype=torch.bfloat16))
""",
        ["TA101"],
    ),
    "batches of NaN": (
        """\
net.load_state_dict(weights)
net.eval()
with torch.no_grad():
    for _ in range(20):
        net(torch.full((8, 4), torch.nan))  # here
""",
        ["TA101"],
    ),
    "attention that drops in evaluation": (
        """\
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)

    def forward(self, x):
        x = self.project(x)
        return nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.1)  # here


model = Attention().eval()
with torch.no_grad():
    for _ in range(3):
        model(torch.randn(2, 5, 8))
""",
        ["TA417"],
    ),
}


@pytest.mark.parametrize("program", HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_program_is_not_complained_about(program: str, tmp_path: Path) -> None:
    found = observed(SETUP + program, tmp_path, every_n_steps=1000)
    assert [(each.rule, each.site.line, each.message) for each in found] == []


@pytest.mark.parametrize(("program", "rules"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_found_at_its_line(program: str, rules: list[str], tmp_path: Path) -> None:
    code = SETUP + program
    [line] = [number for number, text in enumerate(code.splitlines(), 1) if text.endswith("# here")]
    found = observed(code, tmp_path, every_n_steps=1000)
    assert [(each.rule, each.site.line) for each in found] == [(rule, line) for rule in rules]


TRAINING = """\
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in batches:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
"""


def told(code: str, folder: Path) -> list[str]:
    return watched(SETUP + code, folder, path="example.py", every_n_steps=1000).not_seen


def test_the_report_says_how_many_passes_were_looked_at(tmp_path: Path) -> None:
    said = told(
        "net.eval()\nwith torch.no_grad():\n    for _ in range(40):\n        net(torch.randn(2, 4))\n",
        tmp_path,
    )
    assert said == [
        "training, as no optimizer was built: looked at 10 of 40 forward passes"  # 1 to 8, 16 and 32
    ]


def test_after_a_thousand_passes_nothing_is_followed(tmp_path: Path) -> None:
    code = """\
from torch.nn.modules import module
net.eval()
with torch.no_grad():
    for _ in range(1023):
        net(torch.randn(2, 4))
    assert module._global_forward_hooks
    net(torch.randn(2, 4))
    net(torch.randn(2, 4))
    assert not module._global_forward_hooks
    assert not module._global_forward_pre_hooks
"""
    [said] = told(code, tmp_path)
    assert said.endswith("looked at 15 of the first 1,024 forward passes")


def test_so_it_is_where_transformers_is_loaded(tmp_path: Path) -> None:
    """What looks at language models went on listening to each module."""
    pytest.importorskip("transformers")
    code = """\
import transformers.modeling_utils
from torch.nn.modules import module
net.eval()
with torch.no_grad():
    for _ in range(1025):
        net(torch.randn(2, 4))
    assert not module._global_forward_hooks
"""
    told(code, tmp_path)


def test_a_training_after_a_thousand_passes_is_looked_at(tmp_path: Path) -> None:
    passes = "with torch.no_grad():\n    for _ in range(1030):\n        net(torch.zeros(8, 4))\n"
    training = TRAINING.replace("x, y in", "step, (x, y) in enumerate(").replace("batches:", "batches):")
    code = SETUP + passes + training.replace("net(x)", "net(x / (step < 2))")
    found = watched(code, tmp_path, path="example.py", every_n_steps=1).findings
    assert found[0].rule == "TA101"


def test_a_program_without_a_pass_made_no_training_step(tmp_path: Path) -> None:
    assert told("", tmp_path) == [reports.NO_TRAINING]


PASSES = """\
with torch.no_grad():
    for x, _ in batches:
        net(x.fill_(torch.nan))
"""


def test_passes_before_an_optimizer_is_built_are_none_of_a_program_without(tmp_path: Path) -> None:
    code = f"{SETUP}net.load_state_dict(weights)\n{PASSES}net = Net()\n{TRAINING}"
    audit = watched(code, tmp_path, path="example.py", every_n_steps=1000)
    assert audit.findings == []
    assert audit.not_seen == []
