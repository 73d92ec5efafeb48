"""What the dry run knows of libraries: what has no effect on tensors, modules and optimizers, and what hands them on."""

from pathlib import Path
from typing import Any

import pytest

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.machine.library import find
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.plain import _PLAIN as PLAIN
from ta_lint.dryrun.stubs.torch import outputs
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import DATA, Class, Known, Object, Sequence, Unknown, Value

START = """\
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.ones(4, 2)
"""


def ran(tmp_path: Path, code: str) -> tuple[Machine, dict[str, Any]]:
    """A dry run of a program that begins with a model and an optimizer, and the names that it leaves."""
    script = tmp_path / "train.py"
    script.write_text(START + code)
    machine = dry_run(str(script))
    return machine, machine.program.module(machine, str(script), "__main__").fields


def actions(machine: Machine, action: str) -> list[int]:
    """The lines of actions, from the first after `START`."""
    return [event.place.line - START.count("\n") for event in machine.events if event.action == action]


def is_plain(value: Value) -> bool:
    return isinstance(value, Unknown) and value.type == DATA


@pytest.mark.parametrize(
    "call",
    [
        "__import__('os').path.join('a', 'b')",
        "print(optimizer)",
    ],
)
def test_a_call_that_only_looks_leaves_the_optimizer_in_sight(tmp_path: Path, call: str) -> None:
    assert actions(ran(tmp_path, call)[0], "unknown") == []


def test_logs_and_files_do_nothing_to_an_optimizer(tmp_path: Path) -> None:
    code = """
import copy, json, logging, pickle, time
import numpy as np
import wandb
logging.getLogger("train").info("%s", optimizer)
wandb.init(config={"optimizer": optimizer})
pickle.dump(optimizer, open("optimizer.pkl", "wb"))
np.save("x.npy", optimizer)
time.sleep(optimizer)
"""
    assert actions(ran(tmp_path, code)[0], "unknown") == []


def test_a_function_of_a_library_that_nobody_knows_may_do_anything_with_an_optimizer(tmp_path: Path) -> None:
    assert actions(ran(tmp_path, "import speedup\nspeedup.run(optimizer)\nspeedup.run(3)")[0], "unknown") == [
        2
    ]


def test_what_numpy_gives_has_no_graph(tmp_path: Path) -> None:
    code = """
import numpy as np
array = model(x).detach().numpy()
tensor = torch.from_numpy(np.sqrt(array) * 2)
loss = (model(x) * torch.tensor(array.mean())).sum()
of_both = array * model(x)
"""
    _, names = ran(tmp_path, code)
    assert is_plain(names["array"])
    assert names["tensor"].facts.roots == frozenset()
    assert not names["tensor"].facts.open
    assert len(names["loss"].facts.roots) == 2
    assert not names["loss"].facts.open
    assert len(names["of_both"].facts.roots) == 2


def test_the_settings_of_a_file_hold_no_tensor(tmp_path: Path) -> None:
    code = """
import json, os, yaml
settings = yaml.safe_load(open("train.yaml"))
rate = settings["optimizer"]["lr"] * 2
names = [one for one in settings["names"]]
loss = model(x).sum() * settings.weight * float(os.environ["SCALE"])
"""
    _, names = ran(tmp_path, code)
    assert is_plain(names["rate"])
    assert not names["loss"].facts.open


def test_what_is_none_may_become_anything(tmp_path: Path) -> None:
    _, names = ran(tmp_path, "model = None\nparameters = model.parameters()")
    assert isinstance(names["parameters"], Unknown)
    assert names["parameters"].type is None


def test_a_value_that_is_a_number_or_a_tensor_may_have_a_graph(tmp_path: Path) -> None:
    code = (
        "import os\npart = model(x).mean() if os.path.exists('a') else os.environ['WEIGHT']\nloss = part * 2"
    )
    loss = ran(tmp_path, code)[1]["loss"]
    assert isinstance(loss, Unknown)
    assert loss.type is None


def test_a_library_hands_on_what_it_gets(tmp_path: Path) -> None:
    code = "import random, operator\nchosen = operator.itemgetter(0)([model(x)])\nloss = (operator.add(model(x), 1)).sum()"
    loss = ran(tmp_path, code)[1]["loss"]
    assert isinstance(loss, Unknown)
    assert loss.type is None


def test_a_decorator_of_a_library_keeps_the_function_and_does_not_run_it(tmp_path: Path) -> None:
    code = """
import functools, numba
import torch.compiler
@torch.compiler.disable
@torch.jit.ignore
def step():
    optimizer.step()
step()
"""
    machine, _ = ran(tmp_path, code)
    assert actions(machine, "step") == [7]
    assert all(event.certain for event in machine.events if event.action == "step")


def test_a_function_that_a_library_gets_runs_perhaps(tmp_path: Path) -> None:
    code = "import threading\ndef work():\n    optimizer.step()\nthreading.Thread(target=work).start()"
    machine, _ = ran(tmp_path, code)
    assert actions(machine, "step") == [3]
    assert not any(event.certain for event in machine.events if event.action == "step")


def test_a_class_of_a_library_as_a_base_hides_nothing(tmp_path: Path) -> None:
    code = """
from abc import ABC, abstractmethod
class Base(torch.nn.Module, ABC):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
    @abstractmethod
    def forward(self, x): ...
class Net(Base):
    def forward(self, x):
        return self.fc(x)
parameters = list(Net().parameters())
"""
    parameters = ran(tmp_path, code)[1]["parameters"]
    assert len(parameters.items) == 2
    assert parameters.rest is None


def test_a_tensor_is_no_array_and_perhaps_an_iterable(tmp_path: Path) -> None:
    code = """
import numpy as np
from collections.abc import Iterable
array = isinstance(x, np.ndarray)
iterable = isinstance(x, Iterable)
"""
    _, names = ran(tmp_path, code)
    assert names["array"] == Known(False)
    assert isinstance(names["iterable"], Unknown)


LOADER = """
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(x, torch.ones(4)), batch_size=2)
"""


@pytest.mark.parametrize(
    "bar",
    ["tqdm.tqdm(loader, desc='train')", "tqdm.auto.tqdm(enumerate(loader))", "rich.progress.track(loader)"],
)
def test_a_bar_gives_what_is_below_it(tmp_path: Path, bar: str) -> None:
    code = f"{LOADER}import rich.progress, tqdm, tqdm.auto\nbar = {bar}\nfor batch in bar:\n    optimizer.step()\nlength = len(loader)"
    machine, _ = ran(tmp_path, code)
    assert len(actions(machine, "batch")) == 2
    assert len(actions(machine, "step")) == 2


def test_a_bar_shows_numbers_and_reads_them(tmp_path: Path) -> None:
    code = f"{LOADER}from tqdm import tqdm\nbar = tqdm(loader)\nbar.set_postfix(loss=model(x).mean())\nbar.update(1)\nbar.close()"
    machine, _ = ran(tmp_path, code)
    assert actions(machine, "read") == [6]
    assert actions(machine, "unknown") == []


def test_parts_of_one_split_are_known_as_such(tmp_path: Path) -> None:
    code = """
import numpy as np
from sklearn.model_selection import KFold, train_test_split
data = np.load("x.npy")
train, test, labels, other_labels = train_test_split(data, [0, 1], test_size=0.2)
inputs = torch.tensor(train)
for fit, held_out in KFold(5).split(data):
    pass
"""
    _, names = ran(tmp_path, code)
    train, test = names["train"], names["test"]
    assert (train.fields["of"], train.fields["split"]) == (test.fields["of"], test.fields["split"])
    assert train.fields["number"] != test.fields["number"]
    assert names["inputs"].facts.source is train
    assert isinstance(names["labels"], Sequence)
    assert names["fit"].fields["of"] is names["held_out"].fields["of"] is names["data"]


def test_hydra_gives_the_program_its_configuration(tmp_path: Path) -> None:
    code = """
import hydra
@hydra.main(config_path=".", config_name="train")
def main(cfg):
    global loss
    loss = model(x).sum() * cfg.weight
main()
"""
    loss = ran(tmp_path, code)[1]["loss"]
    assert len(loss.facts.roots) == 2
    assert not loss.facts.open


def test_a_stack_of_contexts_enters_them(tmp_path: Path) -> None:
    code = """
from contextlib import ExitStack, nullcontext
with ExitStack() as stack:
    stack.enter_context(torch.no_grad())
    inside = model(x)
outside = model(x)
with nullcontext():
    plain = model(x)
"""
    _, names = ran(tmp_path, code)
    assert names["inside"].facts.roots == frozenset()
    assert len(names["outside"].facts.roots) == len(names["plain"].facts.roots) == 2


def test_a_function_of_autograd_leads_to_what_it_gets(tmp_path: Path) -> None:
    code = """
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.round()
    @staticmethod
    def backward(ctx, gradient):
        return gradient
result = Round.apply(model(x))
"""
    facts = ran(tmp_path, code)[1]["result"].facts
    assert len(facts.roots) == 2
    assert facts.cuts == ()


def test_an_operation_in_steps_says_that_its_gradient_is_zero(tmp_path: Path) -> None:
    facts = ran(tmp_path, "result = torch.round(model(x))")[1]["result"].facts
    assert len(facts.roots) == 2
    assert [cut.how for cut in facts.cuts] == ["a gradient of zero"]


@pytest.mark.parametrize(
    ("made", "dtype"),
    [
        ("torch.zeros(2)", "float32"),
        ("torch.zeros(2).long()", "int64"),
        ("torch.arange(3)", "int64"),
        ("torch.tensor([1, 2])", "int64"),
        ("torch.tensor([1.0, 2])", "float32"),
        ("torch.zeros(2, dtype=torch.float16)", "float16"),
        ("torch.zeros(2) > 0", "bool"),
        ("torch.ones(2).to(torch.device('cpu'))", "float32"),
        ("torch.ones(2).to(settings)", None),
        ("model(x)", "float32"),
        ("torch.ones(2) @ torch.ones(2)", "float32"),
    ],
)
def test_a_dtype_is_known_where_the_program_says_it(tmp_path: Path, made: str, dtype: str | None) -> None:
    assert (
        ran(tmp_path, f"import json\nsettings = json.load(open('a'))\nresult = {made}")[1][
            "result"
        ].facts.dtype
        == dtype
    )


def test_another_default_dtype_holds_from_there_on(tmp_path: Path) -> None:
    _, names = ran(tmp_path, "torch.set_default_dtype(torch.float64)\nresult = torch.zeros(2)")
    assert names["result"].facts.dtype == "float64"


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        ("model(x)[:, 0]", (4,)),
        ("x[0]", (2,)),
        ("x[None, ..., 1:]", (1, 4, 1)),
        ("x.view(-1)", (8,)),
        ("x.unsqueeze(1).expand(-1, 3, -1)", (4, 3, 2)),
        ("torch.cat([x, x], dim=1)", (4, 4)),
        ("torch.stack([x, x])", (2, 4, 2)),
        ("x.mean(dim=1, keepdim=True)", (4, 1)),
        ("x.t() @ x", (2, 2)),
        ("x.permute(1, 0).flatten()", (8,)),
        ("torch.max(x, 1)[1]", (4,)),
        ("x.sum()", ()),
    ],
)
def test_a_shape_is_known_through_operations(tmp_path: Path, made: str, shape: tuple[int, ...]) -> None:
    assert ran(tmp_path, f"result = {made}")[1]["result"].facts.shape == shape


def test_a_method_that_no_row_has_is_not_known(tmp_path: Path) -> None:
    _, names = ran(tmp_path, "result = x.frobnicate()")
    assert not isinstance(names["result"], Tensor)


@pytest.mark.parametrize(
    ("code", "result"),
    [
        (
            "from collections import namedtuple\nP = namedtuple('P', 'a b')\np = P(1, b=2)\nresult = p.a + p[1]",
            3,
        ),
        ("import functools\nresult = functools.reduce(lambda a, b: a * b, [2, 3, 4])", 24),
        ("import math\nresult = math.sqrt(16)", 4.0),
        ("import numpy as np\nresult = np.prod((2, 3))", 6),
        (
            "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 1\nresult = dataclasses.replace(A(), x=5).x",
            5,
        ),
        ("result = dict.fromkeys(['a'], 3)['a']", 3),
    ],
)
def test_what_python_computes_is_known(tmp_path: Path, code: str, result: object) -> None:
    assert ran(tmp_path, code)[1]["result"] == Known(result)


def test_a_pipeline_of_transforms_ends_in_a_tensor(tmp_path: Path) -> None:
    code = """
from torchvision import datasets, transforms
pipeline = transforms.Compose([transforms.Resize(32), transforms.ToTensor(), transforms.Normalize(0, 1)])
image, label = datasets.CIFAR10("data", train=True, transform=pipeline)[0]
raw = datasets.CIFAR10("data")[0][0]
"""
    _, names = ran(tmp_path, code)
    assert isinstance(names["image"], Tensor)
    assert not isinstance(names["raw"], Object)


def test_a_metric_has_no_parameters_and_no_graph(tmp_path: Path) -> None:
    code = """
import torchmetrics
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.accuracy = torchmetrics.Accuracy(task="binary")
parameters = list(Net().parameters())
metric = torchmetrics.MeanMetric()
metric.update(model(x))
value = metric.compute()
"""
    _, names = ran(tmp_path, code)
    assert len(names["parameters"].items) == 2
    assert names["parameters"].rest is None
    assert names["value"].facts.roots == frozenset()


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("torch.nn.modules.batchnorm.BatchNorm2d", "torch.nn.BatchNorm2d"),
        ("torch.optim.adam.Adam", "torch.optim.Adam"),
        (
            "torch.nn.parallel.distributed.DistributedDataParallel",
            "torch.nn.parallel.DistributedDataParallel",
        ),
        ("torch.distributions.normal.Normal", "torch.distributions.Normal"),
    ],
)
def test_a_class_is_the_same_by_the_name_of_its_package(inner: str, shown: str) -> None:
    assert find(inner) is find(shown)
    assert isinstance(find(shown), Class)


def test_a_quantised_layer_is_another_class() -> None:
    assert find("torch.nn.quantized.Linear") is not find("torch.nn.Linear")


def test_layers_have_the_base_classes_that_programs_ask_for(tmp_path: Path) -> None:
    code = """
from torch.nn.modules.batchnorm import _BatchNorm
norm = isinstance(torch.nn.BatchNorm2d(3), _BatchNorm)
other = isinstance(torch.nn.LayerNorm(3), _BatchNorm)
converted = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
"""
    _, names = ran(tmp_path, code)
    assert (names["norm"], names["other"]) == (Known(True), Known(False))
    assert names["converted"] is names["model"]


def test_what_a_program_puts_on_a_class_of_torch_is_gone_in_the_next(tmp_path: Path) -> None:
    ran(tmp_path, "torch.nn.Module.__call__ = lambda self, x: x\ntorch.optim.SGD.step = lambda self: None")
    machine, names = ran(tmp_path, "loss = model(x).sum()\noptimizer.step()")
    assert len(names["loss"].facts.roots) == 2
    assert actions(machine, "step") == [2]


def test_no_library_is_listed_twice() -> None:
    every = [*PLAIN.libraries["numbers"].split(), *PLAIN.libraries["others"].split()]
    assert sorted(set(every)) == sorted(every)
    results = [name for names in PLAIN.results.values() for name in names.split()]
    assert sorted(set(results)) == sorted(results)


@pytest.mark.parametrize(
    "drawn",
    [
        "axis.imshow(picture)",
        "axes[0, 1].imshow(picture)",
        "for one in axes.flat:\n    one.imshow(picture)",
        "figure.add_subplot(121).plot(picture)",
        "plt.imshow(picture)",
    ],
)
def test_what_matplotlib_draws_is_seen_by_people(drawn: str, tmp_path: Path) -> None:
    code = (
        "import matplotlib.pyplot as plt\nfigure, axis = plt.subplots()\n_, axes = plt.subplots(2, 2)\n"
        f"picture = model(x).detach().numpy()\n{drawn}\n"
    )
    used = [event.detail["how"] for event in ran(tmp_path, code)[0].events if event.action == outputs.USED]
    assert outputs.SHOWN in used


@pytest.mark.parametrize(
    "make",
    [
        "munch.Munch(first=model, settings=dict(size=3))",
        "munch.munchify({'first': model, 'settings': {'size': 3}})",
        "easydict.EasyDict({'first': model, 'settings': {'size': 3}})",
        "addict.Dict(first=model, settings={'size': 3})",
    ],
)
def test_entries_of_a_dictionary_of_a_library_are_its_attributes(tmp_path: Path, make: str) -> None:
    code = f"""
import addict, easydict, munch
every = {make}
every.other = torch.nn.Linear(2, 2)
size = every.settings["size"]
inner = every.settings.size
_ = [one.train() for one in (every[key] for key in every) if isinstance(one, torch.nn.Module)]
every.first(every.other(x)).mean().backward()
"""
    machine, names = ran(tmp_path, code)
    assert names["size"] == Known(3)
    assert names["inner"] == Known(3) or "dict(" in make
    (back,) = [event for event in machine.events if event.action == "backward"]
    assert len(back.detail["roots"]) == 4
    assert not back.detail["open"]
    trained = [event.subject for event in machine.events if event.action == "train" and event.certain]
    assert trained == [names["model"], names["every"].fields["other"]]
