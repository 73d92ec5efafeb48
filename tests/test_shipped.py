"""What holds of every training loop: each of these invariants is broken by its own bug, and by nothing healthy."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ta_lint.core.catalogue import catalogue
from ta_runtime.invariants import file, replay, shipped
from ta_runtime.invariants.checking import Checker
from ta_runtime.invariants.laws import LAWS
from ta_runtime.runs import Run
from ta_runtime.trace.collection import collecting
from ta_runtime.trace.event import Event, Flag

SHIPPED = shipped.shipped()


def broken(train: Callable[[], object], folder: Path) -> set[str]:
    """The laws that a training breaks, by their names."""
    torch.manual_seed(0)
    with collecting(str(folder / "trace"), level="ops"):
        train()
    checker = Checker(SHIPPED)
    return {
        str(each.invariant.terms["law"]) for each in replay.violations(Run(str(folder / "trace")), checker)
    }


def test_ids_and_sentences_in_the_file_are_what_they_are_written_anew(tmp_path: Path) -> None:
    file.save(tmp_path / "again.json", SHIPPED)
    assert (tmp_path / "again.json").read_text("utf-8") == shipped.FILE.read_text("utf-8")


def test_all_laws_are_shipped_and_name_rules_that_exist() -> None:
    assert {each.terms["law"] for each in SHIPPED if each.template == "law"} == LAWS.keys()
    assert {each.covered_by for each in SHIPPED} <= catalogue().keys() | {""}


# -- one process ----------------------------------------------------------------------------------------------


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))


def loss_of(model: nn.Module) -> Tensor:
    x = torch.randn(8, 6)
    return F.mse_loss(model(x).float(), x[:, :1])


def trained(
    model: nn.Module, optimizer: torch.optim.Optimizer, between: Callable[[int], object] = lambda step: None
) -> None:
    for step in range(4):
        optimizer.zero_grad()
        loss_of(model).backward()
        between(step)
        optimizer.step()


def healthy() -> None:
    model = net()
    trained(model, torch.optim.SGD(model.parameters(), lr=0.1))


def only_frozen_held() -> None:
    model = net()
    model[0].requires_grad_(False)
    trained(model, torch.optim.SGD(model[0].parameters(), lr=0.1))


def parameters_replaced_after_the_optimizer_was_built() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for layer in (model[0], model[2]):
        layer.weight, layer.bias = nn.Parameter(layer.weight.detach()), nn.Parameter(layer.bias.detach())
    trained(model, optimizer)


def learning_rate_off_by_orders_of_magnitude() -> None:
    model = net()
    trained(model, torch.optim.SGD(model.parameters(), lr=1e-30))


def frozen_without_clearing() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_of(model).backward()
    model[0].requires_grad_(False)
    for _ in range(3):
        loss_of(model).backward()
        optimizer.step()


def converted_between_steps() -> None:
    model = net().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trained(model.float(), optimizer)
    model.bfloat16()
    x = torch.randn(8, 6, dtype=torch.bfloat16)
    model(x).float().mean().backward()
    optimizer.step()


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(10, 6)
        self.head = nn.Linear(6, 10, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.tokens(ids))


def untied_by_a_reload() -> None:
    model = Tied()
    for step in range(5):
        if step == 3:
            model.head.weight = nn.Parameter(model.head.weight.detach().clone())
        if step in (0, 3):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        ids = torch.randint(10, (16,))
        optimizer.zero_grad()
        F.cross_entropy(model(ids), (ids + 1) % 10).backward()
        optimizer.step()


def statistics_written_in_evaluation() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    model[1].eval()
    trained(model, torch.optim.SGD(model.parameters(), lr=0.1), lambda step: model[1].running_mean.add_(0.01))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.project(x)[None]
        return F.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.2)[0]


def attention_drops_in_evaluation() -> None:
    model = nn.Sequential(Attention(), nn.Linear(6, 1))
    trained(model, torch.optim.SGD(model.parameters(), lr=0.1))
    model.eval()
    with torch.no_grad():
        model(torch.randn(8, 6))


def clipped_while_scaled() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(loss_of(model)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def schedule_before_the_first_step() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    trained(model, optimizer, lambda step: schedule.step())


BUGS = {
    "holds-trained": only_frozen_held,
    "finds-gradient": parameters_replaced_after_the_optimizer_was_built,
    "moves-parameters": learning_rate_off_by_orders_of_magnitude,
    "frozen-rests": frozen_without_clearing,
    "dtype-stays": converted_between_steps,
    "tied-stay-tied": untied_by_a_reload,
    "statistics-rest": statistics_written_in_evaluation,
    "attention-keeps-all": attention_drops_in_evaluation,
    "unscaled-before-clipped": clipped_while_scaled,
    "schedule-follows": schedule_before_the_first_step,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("law", BUGS)
def test_a_law_is_broken_by_its_own_bug_alone(law: str, tmp_path: Path) -> None:
    assert broken(BUGS[law], tmp_path) == {law}


def test_a_healthy_training_breaks_no_law(tmp_path: Path) -> None:
    assert broken(healthy, tmp_path) == set()


def test_clearing_that_passes_over_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def zero_grad(optimizer: torch.optim.Optimizer, set_to_none: bool = True) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.dim() > 1:
                    parameter.grad = None

    monkeypatch.setattr(torch.optim.Optimizer, "zero_grad", zero_grad)
    assert broken(healthy, tmp_path) == {"clears-gradients"}


def test_a_layer_that_autocast_does_not_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a compiler or another backend takes the place of a function of torch."""

    def forward(layer: nn.Linear, x: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            return F.linear(x.float(), layer.weight, layer.bias)

    def train() -> None:
        model = net()
        with torch.autocast("cpu", torch.bfloat16):
            trained(model, torch.optim.SGD(model.parameters(), lr=0.1))

    assert broken(train, tmp_path / "as it is") == set()
    monkeypatch.setattr(nn.Linear, "forward", forward)
    assert broken(train, tmp_path / "with another") == {"autocast-lowers"}


def test_where_the_learning_rate_is_zero_nothing_need_move(tmp_path: Path) -> None:
    def train() -> None:
        model = net()
        trained(model, torch.optim.SGD(model.parameters(), lr=0.0))

    assert broken(train, tmp_path) == set()


class Two(nn.Module):
    """Has a scalar in each of its halves, which begin alike."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.a, self.b = net(), nn.PReLU(), nn.PReLU()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.b(self.net(self.a(x)))
        return result


def test_scalars_that_an_optimizer_moves_by_signs_are_equal_by_chance(tmp_path: Path) -> None:
    def train() -> None:
        model = Two()

        def by_sign(step: int) -> None:
            for parameter in model.parameters():
                assert parameter.grad is not None
                torch.sign(parameter.grad, out=parameter.grad)
            model.a.weight.grad = torch.ones(1)
            model.b.weight.grad = torch.ones(1) if step < 3 else -torch.ones(1)

        trained(model, torch.optim.SGD(model.parameters(), lr=0.01), by_sign)

    assert broken(train, tmp_path) == set()


def test_the_next_model_of_a_sweep_may_have_another_dtype(tmp_path: Path) -> None:
    def train() -> None:
        for dtype in (torch.float32, torch.float64):
            model = net().to(dtype)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.randn(8, 6, dtype=dtype)).mean().backward()
                optimizer.step()
            del model, optimizer

    assert broken(train, tmp_path) == set()


def test_the_next_model_of_a_sweep_need_not_be_tied(tmp_path: Path) -> None:
    def train() -> None:
        for is_tied in (True, False):
            model = Tied()
            if not is_tied:
                model.head = nn.Linear(6, 10, bias=False)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            for _ in range(4):
                ids = torch.randint(10, (16,))
                optimizer.zero_grad()
                F.cross_entropy(model(ids), (ids + 1) % 10).backward()
                optimizer.step()
            del model, optimizer

    assert broken(train, tmp_path) == set()


def test_of_each_model_of_a_sweep_something_moves(tmp_path: Path) -> None:
    def train() -> None:
        for rate in (0.1, 1e-30):
            model = net()
            trained(model, torch.optim.SGD(model.parameters(), lr=rate))
            del model

    assert broken(train, tmp_path) == {"moves-parameters"}


def test_a_trace_of_some_steps_alone_breaks_no_law(tmp_path: Path) -> None:
    torch.manual_seed(0)
    with collecting(str(tmp_path / "trace"), every=2, warm_up=1):
        healthy()
    assert list(replay.violations(Run(str(tmp_path / "trace")), Checker(SHIPPED))) == []


# -- two ranks: what they tell each other ---------------------------------------------------------------------


def event(
    kind: str, name: str, seq: int, *, subject: str = "", digest: int | None = None, parent: int = -1
) -> Event:
    flags = int(Flag.WHOLE | Flag.GRAD)
    return Event(0, "train", seq, seq + 1, parent, kind, name, subject, "", "float32", "4", "", digest, None, flags, "", 0)  # fmt: skip


def step(weight: int, gradient: int) -> list[Event]:
    """A step that finds a gradient and leaves a weight with these digests."""
    return [
        event("gradient", "torch.nn.Linear", 1, subject="0.weight", digest=gradient, parent=0),
        event("parameter", "torch.nn.Linear", 2, subject="0.weight", digest=weight, parent=0),
        event("loop", "torch.optim.SGD.step", 0),
    ]


def parted(steps: list[tuple[list[Event], list[Event]]]) -> list[tuple[int, str]]:
    """Step and law of what two ranks break by these events of each step."""
    checker = Checker([each for each in SHIPPED if each.template == "law"])
    found = []
    for number, events_of in enumerate(steps):
        told = []
        for rank, own in enumerate(events_of):
            checker.see(own, rank)
            checker.step_over(number, rank)
            told.append(checker.told(rank))
        peers = {key: value for key, (value, _) in told[0].items()}
        found += [(number, str(one.invariant.terms["law"])) for one in checker.compare(1, told[1], 0, peers)]
    return found


def test_replicas_part() -> None:
    together = [(step(7 + number, 3 + number), step(7 + number, 3 + number)) for number in range(3)]
    assert parted([*together, (step(20, 6), step(21, 16))]) == [(3, "replicas-stay-equal")]


def test_ranks_that_start_from_different_weights_with_equal_gradients() -> None:
    assert parted([(step(7, 3), step(8, 3))]) == [(0, "replicas-stay-equal")]


def test_parts_of_a_model_differ_and_may_begin_alike() -> None:
    assert parted([(step(7, 3), step(7, 4)), (step(9, 5), step(10, 6)), (step(11, 7), step(12, 8))]) == []


def test_one_rank_calls_a_collective_more() -> None:
    call = event("collective", "torch.distributed.all_reduce", 0, subject="all")
    message = event("collective", "torch.distributed.send", 1, subject="all")
    assert parted([([call], [call]), ([call, message], [call])]) == []
    assert parted([([call], [call, call])]) == [(0, "same-collectives")]
