"""What a small program of torch does in a dry run: where gradients go, what optimizers hold, in which mode layers run."""

from pathlib import Path

import pytest

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.pairs import ROWS
from ta_lint.dryrun.values import Known
from ta_lint.events.event import Event

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n"


def ran(folder: Path, code: str) -> list[Event]:
    """The events of a program."""
    script = folder / "train.py"
    script.write_text(HEAD + code, encoding="utf-8")
    return dry_run(str(script)).events


def last(events: list[Event], action: str) -> Event:
    return [event for event in events if event.action == action][-1]


REACHES = {
    "a branch that is taken perhaps": (
        (
            "a, b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)\n"
            "loss = a(torch.ones(1, 2)).sum()\n"
            "if input():\n    loss = loss + b(torch.ones(1, 2)).sum()\n"
        ),
        (1, 1),
    ),
    "a parameter that is frozen by its attribute": (
        (
            "model = nn.Linear(2, 2)\n"
            "for p in model.parameters():\n    p.requires_grad = False\n"
            "model.bias.requires_grad = True\n"
            "loss = model(torch.ones(1, 2)).sum()\n"
        ),
        (1, 0),
    ),
    "layers that a generator makes": (
        (
            "layers = nn.ModuleList(nn.Linear(2, 2, bias=False) for _ in range(40))\n"
            "x = torch.ones(1, 2)\n"
            "for layer in layers:\n    x = layer(x)\n"
            "loss = x.sum()\n"
        ),
        (2, 0),
    ),
    "few layers that a loop names": (
        (
            "class Net(nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        for i in range(6):\n"
            "            setattr(self, f'fc{i}', nn.Linear(2, 2, bias=False))\n"
            "    def forward(self, x):\n"
            "        for i in range(6):\n"
            "            x = getattr(self, f'fc{i}')(x)\n"
            "        return x\n"
            "loss = Net()(torch.ones(1, 2)).sum()\n"
        ),
        (6, 0),
    ),
    "another layer in a container": (
        (
            "model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 2))\n"
            "model[2] = nn.Linear(2, 2, bias=False)\n"
            "del model[0]\n"
            "loss = model(torch.ones(1, 2)).sum()\n"
        ),
        (1, 0),
    ),
    "packed rows": (
        (
            "embedding, rnn = nn.Embedding(4, 2), nn.GRU(2, 2, bias=False)\n"
            "rows = nn.utils.rnn.pack_padded_sequence(embedding(torch.ones(3, 1).long()), torch.tensor([3]))\n"
            "loss = rnn(rows)[1].sum()\n"
        ),
        (3, 0),
    ),
    "the gradient of a gradient": (
        (
            "model, x = nn.Linear(2, 1), torch.ones(1, 2, requires_grad=True)\n"
            "loss = torch.autograd.grad(model(x).pow(2).sum(), x, create_graph=True)[0].sum()\n"
        ),
        (0, 3),
    ),
    "data from a file": (
        "model = nn.Linear(2, 2, bias=False)\nx = torch.load('x.pt')\nloss = model(x['a'].float()).sum()\n",
        (1, 0),
    ),
    "weights that are computed from two parameters": (
        (
            "model = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2, bias=False))\n"
            "loss = model(torch.ones(1, 2)).sum()\n"
        ),
        (2, 0),
    ),
    "a named tuple": (
        (
            "from collections import namedtuple\n"
            "Step = namedtuple('Step', 'value reward')\n"
            "model = nn.Linear(2, 2, bias=False)\n"
            "step = Step(model(torch.ones(1, 2)), 1.0)\n"
            "loss = (step.value * step.reward).sum()\n"
        ),
        (1, 0),
    ),
    "batches of an iterator that begins again": (
        (
            "model = nn.Linear(2, 2, bias=False)\n"
            "loader = DataLoader(TensorDataset(torch.ones(4, 2)))\n"
            "batches = iter(loader)\n"
            "for _ in range(9):\n"
            "    for _ in range(9):\n"
            "        try:\n            (x,) = next(batches)\n"
            "        except StopIteration:\n            batches = iter(loader)\n            (x,) = next(batches)\n"
            "    loss = model(x).sum()\n"
        ),
        (1, 0),
    ),
}


@pytest.mark.parametrize("what", REACHES)
def test_a_gradient_certainly_goes_to_some_parameters_and_perhaps_to_others(
    what: str, tmp_path: Path
) -> None:
    code, expected = REACHES[what]
    backward = last(ran(tmp_path, f"{code}loss.backward()\n"), "backward")
    assert not backward.detail["open"]
    assert (len(backward.detail["roots"]), len(backward.detail["perhaps"])) == expected


def test_the_step_of_an_optimizer_of_the_program_is_one(tmp_path: Path) -> None:
    events = ran(
        tmp_path,
        "class Own(torch.optim.Optimizer):\n"
        "    def step(self, closure=None):\n"
        "        for one in self.param_groups[0]['params']:\n            one.data -= one.grad\n"
        "Own(nn.Linear(2, 2).parameters(), {}).step()\n",
    )
    assert len(held_by(last(events, "step").subject).parameters) == 2


def test_a_mode_is_set_for_each_of_many_layers(tmp_path: Path) -> None:
    events = ran(
        tmp_path,
        "model = nn.Sequential(*[nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)) for _ in range(8)])\n"
        "for module in model.modules():\n"
        "    if isinstance(module, nn.BatchNorm1d):\n        module.eval()\n"
        "model(torch.ones(3, 2))\n",
    )
    modes = {
        (event.subject.cls.name, event.detail["training"]) for event in events if event.action == "forward"
    }
    assert modes == {
        ("torch.nn.Sequential", Known(True)), ("torch.nn.Linear", Known(True)), ("torch.nn.BatchNorm1d", Known(False))
    }  # fmt: skip


def test_a_layer_under_a_name_that_is_not_known_leaves_the_parameters_open(tmp_path: Path) -> None:
    events = ran(
        tmp_path,
        "model = nn.Module()\n"
        "model.fc = nn.Linear(2, 2)\n"
        "setattr(model, input(), nn.Linear(2, 2))\n"
        "torch.optim.SGD(model.parameters(), lr=0.1).step()\n",
    )
    assert not held_by(last(events, "step").subject).complete


def test_a_closure_runs_before_the_step_and_several_times_in_a_search(tmp_path: Path) -> None:
    events = ran(
        tmp_path,
        "model = nn.Linear(2, 2)\n"
        "optimizer = torch.optim.LBFGS(model.parameters())\n"
        "def closure():\n    loss = model(torch.ones(1, 2)).sum()\n    loss.backward()\n    return loss\n"
        "optimizer.step(closure)\n",
    )
    assert [event.action for event in events if event.action in ("backward", "step")] == [
        "backward",
        "backward",
        "step",
    ]


@pytest.mark.parametrize(
    ("loader", "rows"),
    [
        ("DataLoader(TensorDataset(torch.ones(6, 2)), batch_size=3)", {3}),
        ("DataLoader(TensorDataset(torch.ones(5, 2)), batch_size=3)", {3, 2}),
        ("DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=3)", {3, ROWS}),
        ("DataLoader(TensorDataset(torch.ones(8, 2)), 3, drop_last=True)", {3}),
        ("DataLoader(TensorDataset(torch.ones(2, 2)), batch_size=3)", {2}),
        ("DataLoader(TensorDataset(torch.ones(2, 2)), 3, drop_last=True)", set()),
        ("DataLoader([(torch.ones(2),)] * int(input()), 4)", {ROWS}),
        ("DataLoader([(torch.ones(2),)] * int(input()), 4, drop_last=True)", {4}),
    ],
)
def test_a_layer_gives_as_many_rows_as_a_batch_has(loader: str, rows: set[int | str], tmp_path: Path) -> None:
    events = ran(tmp_path, f"model = nn.Linear(2, 5)\nfor x, in {loader}:\n    model(x)\n")
    outputs = [event.detail["output"] for event in events if event.action == "forward"]
    assert {one.shape for one in outputs} == {(count, 5) for count in rows}
    assert {one.dtype for one in outputs} == ({"float32"} if rows else set())


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ("rows", (3, 4, 5)),
        ("rows[:, None]", (3, 1, 4, 5)),
        ("(rows, rows)", (3, 5)),
        ("(rows[:, None], rows)", (3, 3, 5)),
        ("x > 0", (None,)),
        ("x[:, :, 0] > 0", (None, 5)),
        ("x[:, 0, 0] > 0", (None, 4, 5)),
        ("(slice(None), rows)", None),
        ("torch.load('rows.pt')", None),
    ],
)
def test_tensors_of_indices_take_from_a_tensor(
    key: str, shape: tuple[int | None, ...] | None, tmp_path: Path
) -> None:
    code = f"x = torch.randn(6, 4, 5)\nrows = torch.randint(3, (3,))\nnn.functional.mse_loss(x[{key}], x)\n"
    assert last(ran(tmp_path, code), "loss").detail["input"].facts.shape == shape


@pytest.mark.parametrize(
    ("code", "dtype"),
    [
        ("", "float32"),
        ("model = model.double()\n", "float64"),
        ("model.to('cpu', torch.bfloat16)\n", "bfloat16"),
        ("model.to(input())\n", "float32"),
        ("model.to(eval(input()))\n", None),
        ("for p in model.parameters():\n    p.data = p.data.half()\n", "float16"),
        ("torch.autocast('cuda').__enter__()\n", None),
        ("torch.autocast('cuda', enabled=False).__enter__()\n", "float32"),
        ("import accelerate\naccelerate.Accelerator(mixed_precision='bf16')\n", None),
        ("import accelerate\naccelerate.Accelerator()\n", "float32"),
    ],
)
def test_a_layer_computes_in_the_precision_of_its_parameters(
    code: str, dtype: str | None, tmp_path: Path
) -> None:
    events = ran(tmp_path, f"model = nn.Linear(2, 5)\n{code}model(torch.load('x.pt')['x'])\n")
    assert last(events, "forward").detail["output"].dtype == dtype


def test_the_dictionary_of_an_optimizer_has_its_attributes_alone(tmp_path: Path) -> None:
    code = "optimizer = torch.optim.SGD(nn.Linear(2, 5).parameters(), 0.1)\nown = vars(optimizer)\nfor name in own:\n    own[name] = 1\n"
    events = ran(tmp_path, f"{code}optimizer.zero_grad()\n")
    assert last(events, "clear").detail["before"]


MODEL_OF_TWO = """\
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dropout()

    def forward(self, x):
        return self.inner(x)


class B(A):
    pass


flag, other = bool(input()), bool(input())
"""
CHOICES = {
    "two classes": ("model = A() if flag else B()", [False, False]),
    "a factory": (
        "def make():\n    if flag:\n        return A()\n    else:\n        return B()\nmodel = make()",
        [False, False],
    ),
    "three classes": (
        "if flag:\n    model = A()\nelif other:\n    model = B()\nelse:\n    model = nn.Dropout()",
        [False, False, False],
    ),
    "a part of another": (
        (
            "class C(nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        self.net = A() if flag else B()\n"
            "    def forward(self, x):\n"
            "        return self.net(x)\n"
            "model = C()"
        ),
        [False],
    ),
    "perhaps wrapped": ("model = A()\nif flag:\n    model = nn.DataParallel(model)", [False, False]),
    "a choice that is perhaps wrapped": (
        "model = A() if flag else B()\nif other:\n    model = nn.DataParallel(model)",
        [False, False, False],
    ),
    "both there": ("first, second = A(), B()\nmodel = first if flag else second", [None, None]),
}


@pytest.mark.parametrize(("made", "modes"), CHOICES.values(), ids=CHOICES.keys())
def test_what_is_done_to_a_model_is_done_to_the_one_there_is(
    made: str, modes: list[bool | None], tmp_path: Path
) -> None:
    """Of models that are made on different paths there is one alone, and a wrapper is in the mode of what it wraps."""
    code = f"{MODEL_OF_TWO}{made}\nfor _ in range(3):\n    model.train()\n    model.eval()\n    model(torch.ones(2))\n"
    passes = [
        one
        for one in ran(tmp_path, code)
        if one.action == "forward" and not one.detail["within"] and one.passes
    ]
    found = [getattr(one.detail["training"], "value", None) for one in passes[-len(modes) :]]
    assert found == modes
