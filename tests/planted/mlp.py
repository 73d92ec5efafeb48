"""A small training, recorded once as it is and once for each divergence that is planted into it.

    python mlp.py FOLDER NAME ...

records `FOLDER/NAME` for each name of `PLANTED`, and for `base`.
"""

import contextlib
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from ta_runtime.snapshot import Snapshots

STEPS = 5


class Points(Dataset):
    """Points on a plane in three classes, each a little displaced whenever it is asked for."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(7)
        self.inputs = torch.randn(8 * STEPS, 6, generator=generator)
        self.targets = torch.randint(3, (8 * STEPS,), generator=generator)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.inputs[index] + 0.01 * torch.randn(6), self.targets[index]


class Net(nn.Module):
    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 16)
        self.norm = nn.BatchNorm1d(16)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(16, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.out(self.dropout(self.norm(self.fc(inputs).float()).relu()))


class Training:
    """What can be planted into: everything of the training, before it starts and after each step."""

    def __init__(self) -> None:
        self.seed = 0
        self.data = Points()
        self.model: Callable[[], nn.Module] = Net
        self.loader: dict[str, Any] = {"shuffle": True}
        self.learning_rate = 0.01
        self.criterion: nn.Module = nn.CrossEntropyLoss()
        self.forward: Callable[[nn.Module, Tensor], Tensor] = lambda model, inputs: model(inputs)
        self.built: Callable[[nn.Module], object] = lambda model: None
        self.stepped: Callable[[int, nn.Module, torch.optim.Optimizer], object] = (
            lambda step, model, optimizer: None
        )
        self.within: contextlib.AbstractContextManager[object] = contextlib.nullcontext()

    def run(self, folder: Path) -> None:
        random.seed(self.seed)
        torch.manual_seed(self.seed)
        with self.within:
            model = self.model()
            self.built(model)
            optimizer = torch.optim.AdamW(model.parameters(), lr=self.learning_rate)
            with Snapshots(folder, schedule=f"first {STEPS}"):
                batches = iter(DataLoader(self.data, batch_size=8, **self.loader))  # nothing holds the loader
                for step, (inputs, targets) in enumerate(batches):
                    loss = self.criterion(self.forward(model, inputs), targets)
                    loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    self.stepped(step, model, optimizer)


PLANTED: dict[str, Callable[[Training], None]] = {}


def planted(plant: Callable[[Training], None]) -> Callable[[Training], None]:
    PLANTED[plant.__name__] = plant
    return plant


@planted
def base(training: Training) -> None:
    """Nothing."""


@planted
def seed(training: Training) -> None:
    training.seed = 1


@planted
def one_sample(training: Training) -> None:
    training.data.inputs[17, 2] += 1


@planted
def one_label(training: Training) -> None:
    training.data.targets[3] = (training.data.targets[3] + 1) % 3


@planted
def one_weight(training: Training) -> None:
    training.built = lambda model: model.fc.weight.data[3, 2].add_(0.5)


@planted
def one_ulp(training: Training) -> None:
    def built(model: nn.Module) -> None:
        weight = model.out.weight.data
        weight[1, 5] = torch.nextafter(weight[1, 5], torch.tensor(9.0))

    training.built = built


class Spare(Net):
    """With a parameter that nothing computes with."""

    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Parameter(torch.zeros(()))


@planted
def spare(training: Training) -> None:
    """For one step alone."""
    training.model = Spare
    training.stepped = lambda step, model, optimizer: model.spare.data.fill_(step == 1)


@planted
def spare_base(training: Training) -> None:
    training.model = Spare


@planted
def one_weight_later(training: Training) -> None:
    def stepped(step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        if step == 1:
            model.fc.weight.data[0, 0] = 0.0

    training.stepped = stepped


@planted
def checkpoint(training: Training) -> None:
    state = Net().state_dict()
    training.built = lambda model: model.load_state_dict(state)


@planted
def buffer(training: Training) -> None:
    def stepped(step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        if step == 1:
            model.norm.running_mean[4] += 1

    training.stepped = stepped


@planted
def moment(training: Training) -> None:
    def stepped(step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        if step == 1:
            optimizer.state[model.out.weight]["exp_avg"][0, 0] *= 1.5

    training.stepped = stepped


@planted
def dropout(training: Training) -> None:
    training.model = lambda: Net(dropout=0.3)


@planted
def hidden_dropout(training: Training) -> None:
    """Of a function, whose probability stands nowhere."""
    training.model = lambda: Functional(0.4)


class Functional(Net):
    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, inputs: Tensor) -> Tensor:
        return self.out(F.dropout(self.norm(self.fc(inputs)), self.probability))


@planted
def hidden_dropout_base(training: Training) -> None:
    training.model = lambda: Functional(0.1)


@planted
def dtype(training: Training) -> None:
    """One layer in another precision, by an autocast inside of the model."""

    def built(model: nn.Module) -> None:
        forward = model.fc.forward

        def cast(inputs: Tensor) -> Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                return forward(inputs)

        model.fc.forward = cast

    training.built = built


@planted
def precision(training: Training) -> None:
    training.within = torch.autocast("cpu", torch.bfloat16)


@planted
def package(training: Training) -> None:
    training.within = _installed("planted", "1.0.1")


@planted
def package_base(training: Training) -> None:
    training.within = _installed("planted", "1.0.0")


@contextlib.contextmanager
def _installed(name: str, version: str) -> Iterator[None]:
    """A distribution of that name and version, as pip leaves it."""
    folder = Path(sys.argv[1]) / f"{name}-{version}"
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    sys.path.append(str(folder))
    yield
    sys.path.remove(str(folder))


@planted
def variable(training: Training) -> None:
    training.within = _variable("PLANTED_MODE", "fast")


@planted
def known_variable(training: Training) -> None:
    training.within = _variable("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@planted
def harmless_variable(training: Training) -> None:
    training.within = _variable("SSH_TTY", "/dev/pts/7")


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    os.environ[name] = value
    yield
    del os.environ[name]


@planted
def workers(training: Training) -> None:
    training.loader["num_workers"] = 2


@planted
def no_shuffle(training: Training) -> None:
    training.loader["shuffle"] = False


@planted
def unseeded_order(training: Training) -> None:
    """The order of the samples comes from a generator that nobody seeds."""
    training.loader = {"sampler": Shuffled(random.Random(2))}


@planted
def unseeded_order_base(training: Training) -> None:
    training.loader = {"sampler": Shuffled(random.Random(1))}


class Shuffled(list[int]):
    def __init__(self, generator: random.Random) -> None:
        super().__init__(generator.sample(range(8 * STEPS), 8 * STEPS))


class Summed(torch.autograd.Function):
    """A linear map whose gradient is added up sample by sample, as atomic additions on a GPU are: in any order."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, order: list[int]) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.order = order
        return inputs @ weight.T

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        inputs, weight = ctx.saved_tensors
        total = torch.zeros_like(weight)
        for sample in ctx.order:
            total += gradient[sample].outer(inputs[sample])
        return gradient @ weight, total, None


@planted
def summation_order(training: Training) -> None:
    training.model = lambda: Unordered(list(range(8))[::-1])


@planted
def summation_order_base(training: Training) -> None:
    training.model = lambda: Unordered(list(range(8)))


class Unordered(Net):
    def __init__(self, order: list[int]) -> None:
        super().__init__()
        self.order = order

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = Summed.apply(inputs, self.fc.weight, self.order)
        return self.out(self.dropout(self.norm(hidden).relu()))


@planted
def learning_rate(training: Training) -> None:
    training.learning_rate = 0.02


@planted
def schedule(training: Training) -> None:
    def stepped(step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        if step == 2:
            optimizer.param_groups[0]["lr"] = 0.001

    training.stepped = stepped


@planted
def evaluating_norm(training: Training) -> None:
    training.built = lambda model: model.norm.eval()


@planted
def evaluating(training: Training) -> None:
    training.built = lambda model: model.eval()


@planted
def smoothing(training: Training) -> None:
    training.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)


@planted
def reduction(training: Training) -> None:
    training.criterion = nn.CrossEntropyLoss(reduction="sum")


@planted
def threads(training: Training) -> None:
    training.within = _threads(2)


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


@planted
def deterministic(training: Training) -> None:
    training.within = _deterministic()


@contextlib.contextmanager
def _deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@planted
def gradient_hook(training: Training) -> None:
    training.built = lambda model: model.fc.weight.register_hook(lambda gradient: 2 * gradient)


@planted
def frozen(training: Training) -> None:
    training.built = lambda model: model.fc.bias.requires_grad_(False)


@planted
def extra_draw(training: Training) -> None:
    training.stepped = lambda step, model, optimizer: torch.rand(1) if step == 2 else None


@planted
def wider(training: Training) -> None:
    """The model has another layer that trains, which the code alone says."""

    def built(model: nn.Module) -> None:
        model.scale = nn.Parameter(torch.ones(3))

    training.built = built


if __name__ == "__main__":
    for name in sys.argv[2:]:
        training = Training()
        PLANTED[name](training)
        training.run(Path(sys.argv[1]) / name)
