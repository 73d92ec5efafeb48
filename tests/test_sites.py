"""Every object knows the user's line that made it, and every step the line that took it; libraries are passed over.

In the code of a test, the line that an object must stand on ends with `# here: NAME`.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ta_runtime
from ta_runtime.audit.audit import Audit
from ta_runtime.facts import Optimizer, Step
from ta_runtime.naming import Names
from ta_runtime.probes.places import NOWHERE, Place, is_library
from ta_runtime.probes.registers import BUILT
from ta_runtime.probes.sources import of_class
from ta_runtime.settings import resolve

START = "from torch import nn\nimport torch\nfrom torch.utils.data import DataLoader\n"


def marks(code: str) -> dict[str, int]:
    return {
        line.partition("# here: ")[2].strip(): number
        for number, line in enumerate(code.splitlines(), 1)
        if "# here: " in line
    }


def run(code: str, folder: Path, *, late: str = "") -> tuple[dict[str, Any], str, Audit, list[Step]]:
    """The variables of a script run under a session, its path, and its audited steps; `late` runs before the session."""
    script = folder / "script.py"
    script.write_text(START + late + code, encoding="utf-8")
    lines = len((START + late).splitlines())
    names: dict[str, Any] = {"__name__": "script", "__file__": str(script)}
    exec(compile(START + late, str(script), "exec"), names)  # noqa: S102
    audit = Audit(resolve(every_n_steps=1, rules="ALL", output=None, live=False))
    steps: list[Step] = []
    audit.session._look_closer = steps.append
    audit.start()
    try:
        exec(compile("\n" * lines + code, str(script), "exec"), names)  # noqa: S102
    finally:
        audit.stop()
    return names, str(script), audit, steps


def layer_lines(model: nn.Module, script: str) -> dict[str, int]:
    names = Names()
    places = {name: names.layer(model, name, module).place for name, module in model.named_modules()}
    assert {place.path for place in places.values()} == {script}
    return {name: place.line for name, place in places.items()}


def check_layers(code: str, folder: Path, model: str = "model", late: str = "") -> None:
    names, script, _, _ = run(code, folder, late=late)
    lines = layer_lines(names[model], script)
    wanted = marks(START + late + code)
    assert {name: lines["" if name == "model" else name] for name in wanted} == wanted


def test_a_sequential_of_many_lines(tmp_path: Path) -> None:
    code = """
model = nn.Sequential(  # here: model
    nn.Linear(4, 4),  # here: 0
    nn.ReLU(),  # here: 1
    nn.Sequential(  # here: 2
        nn.Dropout(0.1),  # here: 2.0
        nn.Linear(4, 4),  # here: 2.1
    ),
)
"""
    check_layers(code, tmp_path)


def test_nested_modules_of_the_user(tmp_path: Path) -> None:
    code = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self._build(width)
    def _build(self, width):
        self.fc = nn.Linear(width, width)  # here: blocks.0.fc
        self.act = nn.ReLU()  # here: stem.act
class Wide(Block):
    def __init__(self):
        super().__init__(8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Wide()  # here: stem
        self.blocks = nn.ModuleList([Block(8) for _ in range(2)])  # here: blocks.1
        self.heads = nn.ModuleDict()
        self.heads["a"] = nn.Linear(8, 1)  # here: heads.a
        self.add_module("b", nn.Identity())  # here: b
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2),
            2,
        )
        self.norm = None
        self.norm = nn.LayerNorm(8)  # here: norm
def build():
    return Net()  # here: model
model = build()
"""
    check_layers(code, tmp_path)


def test_a_factory_with_a_registry(tmp_path: Path) -> None:
    code = """
from functools import partial, wraps
registry = {}
def register(make):
    @wraps(make)
    def made(**options):
        return make(**options)
    registry[make.__name__] = made
    return made
@register
def tiny(act=nn.ReLU, **options):
    layer = partial(nn.Linear, bias=False)
    return nn.Sequential(  # here: model
        layer(4, 4),  # here: 0
        act(),  # here: 1
    )
model = registry["tiny"]()
"""
    check_layers(code, tmp_path)


def test_a_model_that_was_built_before_stands_on_its_class_and_attributes(tmp_path: Path) -> None:
    late = """
class Net(nn.Module):  # here: model
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)  # here: fc
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())  # here: body.1
model = Net()
plain = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
"""
    code = """
optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
plain(torch.randn(2, 4)).sum().backward()  # here: plain
optimizer.step()
"""
    names, script, _, _ = run(code, tmp_path, late=late)
    wanted = marks(START + late + code)
    assert set(layer_lines(names["plain"], script).values()) == {wanted.pop("plain")}
    lines = layer_lines(names["model"], script)
    assert {name: lines["" if name == "model" else name] for name in wanted} == wanted


def test_copies_stand_where_they_are_put_or_on_their_class(tmp_path: Path) -> None:
    code = """
import copy, pickle
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)  # here: 1.fc
first = Net()
second = copy.deepcopy(first)
model = nn.Sequential(first,
    second)
loaded = pickle.loads(pickle.dumps(nn.Linear(4, 4)))
model.append(loaded)  # here: 2
"""
    check_layers(code, tmp_path)


def test_a_model_of_a_library_stands_on_the_line_that_builds_it(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    code = """
from transformers import GPT2Config, GPT2LMHeadModel
config = GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=17, n_positions=8)
model = GPT2LMHeadModel(config)  # here: model
"""
    names, script, _, _ = run(code, tmp_path)
    assert set(layer_lines(names["model"], script).values()) == {marks(START + code)["model"]}


def test_optimizers_loaders_schedulers_and_scalers(tmp_path: Path) -> None:
    code = """
class Mine(torch.optim.SGD):
    def __init__(self, parameters, lr=0.1):
        super().__init__(parameters, lr=lr)
def build(model, kind=torch.optim.AdamW):
    return kind(model.parameters())  # here: helped
model = nn.Linear(4, 4)
mine = Mine(  # here: mine
    model.parameters(),
)
helped = build(model)
loader = DataLoader(range(8), batch_size=2)  # here: loader
scheduler = torch.optim.lr_scheduler.StepLR(mine, 1)  # here: scheduler
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(mine)  # here: plateau
chained = torch.optim.lr_scheduler.SequentialLR(mine, [
    torch.optim.lr_scheduler.ConstantLR(mine), scheduler], [1])
scaler = torch.amp.GradScaler("cpu")  # here: scaler
"""
    names, script, _, _ = run(code, tmp_path)
    for name, line in marks(START + code).items():
        place = BUILT.get(names[name])
        assert place is not None, name
        assert (place.path, place.line) == (script, line), name


def test_the_line_of_a_step(tmp_path: Path) -> None:
    code = """
def decorated(function):
    def call(*args):
        return function(*args)
    return call
class Trainer:
    def __init__(self, model):
        self.model, self.optimizer = model, torch.optim.SGD(model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
    @decorated
    def step(self):
        loss = nn.functional.mse_loss(  # here: loss
            self.model(torch.randn(2, 4)),  # here: forward
            torch.zeros(2, 4),
        )
        self.optimizer.zero_grad()
        loss.backward()  # here: backward
        self.optimizer.step()  # here: step
        self.scheduler.step()
    def fit(self):
        for _ in range(2):
            self.step()
Trainer(nn.Linear(4, 4)).fit()
"""
    _, script, _, steps = run(code, tmp_path)
    wanted = marks(START + code)
    assert len(steps) == 2
    for step in steps:
        [gradients], [forward], [loss] = step.gradients, step.forwards, step.losses
        places = {
            "step": step.place,
            "loss": loss.place,
            "forward": forward.place,
            "backward": gradients.loss_place,
        }
        assert {name: place.line for name, place in places.items()} == wanted
        assert {place.path for place in places.values()} == {script}


def test_an_optimizer_that_was_built_before_stands_on_its_step(tmp_path: Path) -> None:
    late = "model = nn.Linear(4, 4)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    code = """
for _ in range(2):
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()  # here: step
"""
    _, script, _, steps = run(code, tmp_path, late=late)
    found: list[Optimizer] = [step.gradients[0].optimizer for step in steps]
    assert {(one.place.path, one.place.line) for one in found} == {
        (script, marks(START + late + code)["step"])
    }


def test_generated_code_stands_on_the_line_that_runs_it(tmp_path: Path) -> None:
    code = """
exec("model = nn.Linear(4, 4)")  # here: model
"""
    check_layers(code, tmp_path)


def test_code_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(
            "packed_network.py",
            "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n        self.fc = nn.Linear(4, 4)\n",
        )
    monkeypatch.syspath_prepend(str(archive))
    import packed_network  # type: ignore[import-not-found]

    late = packed_network.Net()
    audit = Audit(resolve(output=None, live=False))
    audit.start()
    built = packed_network.Net()
    audit.stop()
    path = str(archive / "packed_network.py")
    assert BUILT.get(built.fc).line == 6
    assert BUILT.get(built.fc).path == path
    assert of_class(type(late)) == Place(path, 1)  # its source cannot be read


@pytest.mark.parametrize(
    ("path", "library"),
    [
        (nn.__file__, True),
        (torch.utils.data.__file__, True),
        ("/home/me/.venv/lib/python3.11/site-packages/lightning/x.py", True),
        ("/usr/lib/python3/dist-packages/x.py", True),
        ("<string>", True),
        ("<ipython-input-1-abc>", False),
        ("/home/me/site-packages-tools/train.py", False),
        (str(Path(nn.__file__).parents[2] / "torchish" / "x.py"), True),
        (str(Path(ta_runtime.__file__).parent) + "_demo/train.py", False),
    ],
)
def test_what_is_a_library(path: str, library: bool) -> None:
    assert is_library(path) == library


def test_a_class_of_nobody_has_no_line() -> None:
    assert of_class(nn.Linear) is None
    names: Callable[..., Any] = Names().layer
    assert names(nn.Linear(1, 1), "", nn.Linear(1, 1)).place == NOWHERE
