"""The tracer: what a run does is told as events, in order, and the run is what it would have been."""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import pair
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset

from ta_lint.core.errors import UsageError
from ta_lint.core.protocol import Action
from ta_runtime.trace.event import KIND_OF, KINDS, LEVELS, Event, Flag
from ta_runtime.trace.tracer import Tracer

HERE = str(Path(__file__))


def traced(train: Callable[[], object], **options: Any) -> list[Event]:
    events: list[Event] = []
    with Tracer(events.append, **options):
        train()
    return events


def line_of(text: str) -> int:
    """The line of this file that holds a text."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line and "line_of" not in line)


def of(events: list[Event], kind: str, name: str = "", subject: str | None = None) -> list[Event]:
    return [
        event
        for event in events
        if event.kind == kind and event.name.endswith(name) and (subject is None or event.subject == subject)
    ]


def names(events: list[Event]) -> list[str]:
    """In the order in which they began."""
    return [event.name.rpartition(".")[2] for event in sorted(events, key=lambda event: event.seq)]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(functional.relu(self.norm(self.fc(x))))
        return result


def batches(count: int = 3) -> list[tuple[Tensor, Tensor]]:
    return [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(count)]


def loop(count: int = 3, model: nn.Module | None = None) -> nn.Module:
    model = model or Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for x, y in batches(count):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        clip_grad_norm_(list(model.parameters()), 1.0)  # the clip
        optimizer.step()
    return model


# -- the loop -------------------------------------------------------------------------------------------------


def test_traces_on_disk_keep_the_kind_of_each_action() -> None:
    """Recorded traces and invariant files hold these words, so they must never change."""
    assert KIND_OF == {
        Action.EPOCH: "epoch",
        Action.BATCH: "batch",
        Action.FORWARD: "module",
        Action.BACKWARD: "backward",
        Action.SCALE: "loop",
        Action.UNSCALE: "loop",
        Action.CLIP: "loop",
        Action.STEP: "loop",
        Action.UPDATE: "loop",
        Action.CLEAR: "loop",
        Action.SCHEDULE: "loop",
        Action.TRAIN: "loop",
        Action.EVAL: "loop",
        Action.SAVE: "checkpoint",
        Action.LOAD: "checkpoint",
        Action.COLLECTIVE: "collective",
    }


def test_a_trace_has_no_other_kinds_than_those_that_are_described() -> None:
    states = {"parameter", "buffer", "gradient"}
    assert set(KINDS) == {*KIND_OF.values(), *states, "op"}


def test_the_calls_of_a_step_are_told_in_order() -> None:
    events = [event for event in traced(loop, level="modules") if event.kind in ("loop", "backward")]
    assert names(events) == ["zero_grad", "backward", "clip_grad_norm_", "step"] * 3
    assert [event.step for event in events] == [0] * 4 + [1] * 4 + [2] * 4
    assert of(events, "loop", "zero_grad")[0].name == "torch.optim.AdamW.zero_grad"


def test_a_clip_between_backward_and_step_is_told_with_its_line() -> None:
    clip = of(traced(loop), "loop", "clip_grad_norm_")[0]
    assert clip.name == "torch.nn.utils.clip_grad_norm_"
    assert (clip.file, clip.line) == (HERE, line_of("# the clip"))
    assert json.loads(clip.arguments) == {"max_norm": 1.0}
    assert clip.inputs.startswith("float32[8,4]; float32[8]")


def test_a_backward_pass_has_the_loss_as_its_input() -> None:
    backward = of(traced(loop), "backward")[0]
    assert (backward.name, backward.inputs) == ("torch.Tensor.backward", "float32[]")


def test_what_happens_inside_lies_between_the_ends_of_what_is_around_it() -> None:
    events = traced(loop, level="ops")
    by_seq = {event.seq: event for event in events}
    assert len(by_seq) == len(events)
    for event in events:
        assert event.end > event.seq
        if event.parent >= 0:
            around = by_seq[event.parent]
            assert around.seq < event.seq < event.end < around.end
            assert events.index(event) < events.index(around)


def test_a_scheduler_is_told_and_its_first_step_in_the_constructor_is_not() -> None:
    def train() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.SequentialLR(
            optimizer,
            [torch.optim.lr_scheduler.ConstantLR(optimizer), torch.optim.lr_scheduler.StepLR(optimizer, 1)],
            milestones=[2],
        )
        model(torch.randn(1, 2)).sum().backward()
        optimizer.step()
        scheduler.step()

    assert [event.name for event in of(traced(train), "loop")] == [
        "torch.optim.SGD.step",
        "torch.optim.lr_scheduler.SequentialLR.step",
    ]


def test_accumulated_micro_batches_are_one_step() -> None:
    def train() -> None:
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number, (x, _) in enumerate(batches(4)):
            model(x).sum().backward()
            if number % 2:
                optimizer.step()
                optimizer.zero_grad()

    events = traced(train)
    assert [event.step for event in of(events, "backward")] == [0, 0, 1, 1]
    assert [event.step for event in of(events, "module", "Net")] == [0, 0, 1, 1]


def test_of_two_models_that_train_at_once_each_has_its_names_and_a_step_is_one_of_both() -> None:
    def train() -> None:
        generator, critic = nn.Sequential(nn.Linear(2, 4)), nn.Sequential(nn.Linear(4, 1))
        first = torch.optim.Adam(generator.parameters())
        second = torch.optim.Adam(critic.parameters())
        for _ in range(2):
            second.zero_grad()
            critic(generator(torch.randn(3, 2)).detach()).sum().backward()
            second.step()
            first.zero_grad()
            critic(generator(torch.randn(3, 2))).sum().backward()
            first.step()

    events = traced(train)
    steps = of(events, "loop", ".step")
    assert [event.step for event in steps] == [0, 0, 1, 1]
    assert len({event.subject for event in steps}) == 2
    parameters = of(events, "parameter")
    assert len({event.subject for event in parameters}) == 4
    assert {steps[0].seq, steps[1].seq} == {event.parent for event in parameters if event.step == 0}


def test_a_step_that_a_scaler_skips_holds_no_step_of_the_optimizer() -> None:
    def train() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        for number in range(2):
            optimizer.zero_grad()
            loss = model(torch.ones(1, 2)).sum() * (float("inf") if number == 0 else 1.0)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    over: list[int] = []
    events = traced(train, on_step_over=over.append)
    skipped, made = of(events, "loop", "GradScaler.step")
    (step,) = of(events, "loop", "SGD.step")
    assert (step.parent, step.step, skipped.step, made.step) == (made.seq, 1, 0, 1)
    assert over == [0, 1]
    assert names(of(events, "loop", "GradScaler.update")) == ["update"] * 2


def test_a_switch_of_the_mode_is_told_once() -> None:
    def train() -> None:
        model = loop(1)
        model.eval()
        model.train()

    events = traced(train)
    assert [event.name for event in of(events, "loop", "torch.nn.Module.eval")] == ["torch.nn.Module.eval"]
    assert len(of(events, "loop", "torch.nn.Module.train")) == 1


def test_the_phase_is_that_of_the_model() -> None:
    def train() -> None:
        model = loop(1)
        model.eval()
        for x, _ in batches(1):
            model(x)
        model.train()
        with torch.no_grad():
            model(batches(1)[0][0])
        loop(1, model)

    events = of(traced(train), "module", "Net") + of(traced(train), "backward")
    assert [event.phase for event in events] == ["train", "eval", "eval", "train", "train", "train"]


def test_all_before_the_first_forward_pass_is_setup() -> None:
    events = traced(loop)
    first = of(events, "module", "Net")[0]
    assert {event.phase for event in events if event.seq < first.seq} == {"setup"}
    assert {event.phase for event in events if event.seq > first.seq} == {"train"}


def test_all_events_of_a_step_are_told_before_it_is_over() -> None:
    told: list[Event | int] = []
    with Tracer(told.append, level="ops", on_step_over=told.append):
        loop()
    assert [each for each in told if isinstance(each, int)] == [0, 1, 2]
    step = 0
    for each in told:
        if isinstance(each, int):
            step = each + 1
        else:
            assert each.step == step


# -- modules --------------------------------------------------------------------------------------------------


def test_a_module_has_its_path_and_its_public_class() -> None:
    events = of(traced(loop), "module")[:4]
    assert [(event.name, event.subject) for event in events] == [
        ("torch.nn.Linear", "fc"),
        ("torch.nn.BatchNorm1d", "norm"),
        ("torch.nn.Linear", "head"),
        (f"{__name__}.Net", ""),
    ]
    *inner, outer = events
    assert {event.parent for event in inner} == {outer.seq}
    assert inner[0][8:11] == ("float32[8,4]", "float32", "8,8")


def test_a_module_that_is_called_twice_is_told_twice() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Any:
            return self.fc(self.fc(x)), x

    events = traced(lambda: Twice()(torch.randn(2, 4)))
    calls = of(events, "module", "torch.nn.Linear", "fc")
    assert len({event.seq for event in calls}) == 2
    assert calls[0].digest != calls[1].digest
    whole = of(events, "module", "Twice")[0]
    assert (whole.dtype, whole.shape) == ("float32; float32", "2,4; 2,4")


def test_arguments_by_keyword_are_told() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Tensor, factor: float, *, mask: Tensor | None = None) -> Tensor:
            return x * factor

    mask = torch.ones(2, dtype=torch.bool)
    event = of(traced(lambda: Scaled()(x=torch.randn(2), factor=2.0, mask=mask)), "module")[0]
    assert event.inputs == "float32[2]; bool[2]"
    assert json.loads(event.arguments) == {"factor": 2.0}


def test_a_forward_pass_that_raises_is_told_so_and_leaves_nothing_open() -> None:
    class Bad(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.fc(x[:, :3])
            return result

    def train() -> None:
        with pytest.raises(RuntimeError):
            Bad()(torch.randn(2, 4))
        Net()(torch.randn(2, 4))

    events = of(traced(train), "module")
    raised = [event for event in events if event.flags & Flag.RAISED]
    assert [event.name.rpartition(".")[2] for event in raised] == ["Linear", "Bad"]
    assert of(events, "module", ".Net")[0].parent == -1


def test_a_module_that_returns_nothing_has_not_raised() -> None:
    class Silent(nn.Module):
        def forward(self) -> None:
            pass

    try:
        raise ValueError
    except ValueError:
        (event,) = of(traced(Silent()), "module")
    assert not event.flags & Flag.RAISED


def test_a_step_that_raises_does_not_hold_what_comes_after_it() -> None:
    def train() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number, (x,) in enumerate(DataLoader(TensorDataset(torch.randn(4, 2)), batch_size=2)):
            model(x).sum().backward()
            if number == 0:
                optimizer.param_groups[0].pop("lr")
                with pytest.raises(KeyError):
                    optimizer.step()
                optimizer.param_groups[0]["lr"] = 0.1
        optimizer.step()

    events = traced(train)
    bad, good = of(events, "loop", "SGD.step")
    assert bad.flags & Flag.RAISED
    assert not good.flags & Flag.RAISED
    assert {event.parent for event in of(events, "batch")} == {-1}


def test_a_wrapped_model_is_named_as_without_its_wrapper() -> None:
    model = Net()
    wrapped = nn.DataParallel(model)
    events = of(traced(lambda: wrapped(torch.randn(8, 4))), "module")
    assert {event.subject for event in events} == {"fc", "norm", "head", ""}


def test_autocast_and_gradients_are_flags() -> None:
    def train() -> None:
        model = Net()
        with torch.autocast("cpu", torch.bfloat16):
            model(torch.randn(8, 4))
        with torch.no_grad():
            model(torch.randn(8, 4))

    under, without = of(traced(train), "module", "Linear", "fc")
    assert under.flags & Flag.AUTOCAST
    assert under.flags & Flag.REQUIRES_GRAD
    assert under.dtype == "bfloat16"
    assert not without.flags & (Flag.AUTOCAST | Flag.GRAD | Flag.REQUIRES_GRAD)


def test_what_a_checkpoint_computes_again_is_not_told() -> None:
    def train() -> None:
        fc = nn.Linear(4, 4)
        torch.utils.checkpoint.checkpoint(fc, torch.randn(2, 4), use_reentrant=False).sum().backward()

    assert len(of(traced(train, level="ops"), "module")) == 1


# -- states ---------------------------------------------------------------------------------------------------


def test_each_parameter_is_told_after_the_step_with_whether_it_changed() -> None:
    events = traced(loop)
    step = of(events, "loop", "AdamW.step")[0]
    parameters = [event for event in of(events, "parameter") if event.parent == step.seq]
    assert [event.subject for event in parameters] == [name for name, _ in Net().named_parameters()]
    assert all(event.flags & Flag.CHANGED for event in parameters)
    assert parameters[0].name == "torch.nn.Linear"
    assert (parameters[0].dtype, parameters[0].shape) == ("float32", "8,4")
    assert step.seq < parameters[0].seq < step.end


def test_a_step_that_changes_nothing_is_seen_from_the_first_on() -> None:
    def train() -> None:
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for x, _ in batches(2):
            model(x).sum().backward()
            optimizer.step()

    assert not any(event.flags & (Flag.CHANGED | Flag.UNSEEN) for event in of(traced(train), "parameter"))


def test_frozen_parameters_and_buffers_are_told_too() -> None:
    def train() -> None:
        model = Net()
        model.fc.requires_grad_(False)
        optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
        for x, _ in batches(2):
            model(x).sum().backward()
            optimizer.step()

    events = traced(train)
    (_, frozen) = of(events, "parameter", subject="fc.weight")
    assert not frozen.flags & (Flag.CHANGED | Flag.REQUIRES_GRAD)
    (_, trained) = of(events, "parameter", subject="head.weight")
    assert trained.flags & Flag.CHANGED
    (_, mean) = of(events, "buffer", subject="norm.running_mean")
    assert mean.flags & Flag.CHANGED


def test_gradients_are_told_before_the_step_and_as_zero_grad_leaves_them() -> None:
    def train() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for to_none in (True, False):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=to_none)

    events = traced(train)
    by_seq = {event.seq: event for event in events}
    told = of(events, "gradient", subject="weight")
    assert [by_seq[event.parent].name.rpartition(".")[2] for event in told] == [
        "step",
        "zero_grad",
        "step",
        "zero_grad",
    ]
    states = [event.flags & (Flag.NONE | Flag.ZERO) for event in told]
    assert states == [0, Flag.NONE, 0, Flag.ZERO]


def test_tied_weights_are_told_under_both_names() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.b(self.a(x))
            return result

    def train() -> None:
        model = Tied()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(2, 3)).sum().backward()
        optimizer.step()

    first, second = of(traced(train), "parameter")
    assert (first.subject, second.subject) == ("a.weight", "b.weight")
    assert first.digest == second.digest


def test_a_parameter_that_takes_the_place_of_another_is_the_one_that_is_told() -> None:
    def train() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.weight = nn.Parameter(model.weight.detach().clone())
        for _ in range(2):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()

    events = traced(train)
    assert not any(event.flags & Flag.CHANGED for event in of(events, "parameter", subject="weight"))
    assert of(events, "parameter", subject="bias")[0].flags & Flag.CHANGED


def test_of_a_module_with_the_name_of_one_before_nothing_was_seen() -> None:
    def train() -> None:
        for _ in range(2):
            model = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(3):
                if step == 2:
                    model.double()  # of the same module
                model(torch.ones(1, 2, dtype=model.weight.dtype)).sum().backward()
                optimizer.step()
            del model, optimizer

    flags = [
        event.flags & (Flag.CHANGED | Flag.UNSEEN)
        for event in of(traced(train), "parameter", subject="weight")
    ]
    assert flags == [*[Flag.CHANGED] * 3, Flag.UNSEEN, Flag.CHANGED, Flag.CHANGED]


def test_a_closure_holds_the_passes_and_gradients_of_its_step() -> None:
    def train() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = model(torch.ones(1, 2)).square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)

    events = traced(train)
    (step,) = of(events, "loop", "LBFGS.step")
    assert {event.parent for event in of(events, "backward")} == {step.seq}
    gradients = [event for event in of(events, "gradient") if event.parent == step.seq]
    assert gradients
    assert not any(event.flags & Flag.NONE for event in gradients)


# -- loaders, files, functions --------------------------------------------------------------------------------


def test_passes_and_batches_of_a_loader_are_told_and_not_what_it_does_inside() -> None:
    loader = DataLoader(TensorDataset(torch.randn(6, 4)), batch_size=4, shuffle=True)

    def train() -> None:
        Net()(torch.randn(2, 4))
        for _ in range(2):
            for _batch in loader:
                pass

    events = traced(train, level="ops")
    assert [event.kind for event in events[-6:]] == ["epoch", "batch", "batch"] * 2
    assert [event.shape for event in of(events, "batch")] == ["4,4", "2,4", "4,4", "2,4"]
    assert {event.subject for event in of(events, "batch")} == {"0"}
    assert json.loads(of(events, "epoch")[0].arguments)["num_workers"] == 0


def test_loaders_are_numbered_as_they_are_built_and_one_from_before_by_its_first_pass() -> None:
    data = TensorDataset(torch.randn(6, 4))
    before = DataLoader(data, batch_size=1)

    class Own(DataLoader[Any]):
        def __init__(self) -> None:
            super().__init__(data, batch_size=2)
            self.extra = 1

    def passes(*, evaluates_first: bool) -> list[tuple[str, str]]:
        def train() -> None:
            training = DataLoader(data, batch_size=4, drop_last=True)
            evaluation = Own()
            if evaluates_first:
                assert len(list(evaluation)) == 3
            for loader in (training, evaluation, before):
                assert list(loader)

        return sorted({(event.subject, event.shape) for event in of(traced(train), "batch")})

    numbered = [("0", "4,4"), ("1", "2,4"), ("2", "1,4")]
    assert passes(evaluates_first=False) == passes(evaluates_first=True) == numbered


def test_a_loader_whose_settings_cannot_be_read_is_built_as_ever() -> None:
    class Closed(DataLoader[Any]):
        def __getattribute__(self, name: str) -> Any:
            if name == "sampler":
                raise RuntimeError(name)
            return super().__getattribute__(name)

    built: list[object] = []

    def train() -> None:
        built.append(Closed(TensorDataset(torch.randn(6, 4))))

    assert traced(train) == []
    assert len(built) == 1


class Loud(torch.utils.data.Dataset[Tensor]):
    """Calls a module where its samples are made."""

    def __init__(self) -> None:
        self.module = nn.Identity()

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Tensor:
        result: Tensor = self.module(torch.ones(1) * index)
        return result


def test_workers_are_silent() -> None:
    def train() -> None:
        Net()(torch.randn(2, 4))
        assert len(list(DataLoader(Loud(), num_workers=1))) == 2

    events = traced(train, level="ops")
    assert not of(events, "module", "Identity")
    assert json.loads(of(events, "epoch")[0].arguments)["num_workers"] == 1


def test_other_threads_are_silent() -> None:
    def train() -> None:
        thread = threading.Thread(target=lambda: Net()(torch.randn(2, 4)))
        thread.start()
        thread.join()

    assert traced(train, level="ops") == []


def test_what_is_saved_and_loaded_is_told_once(tmp_path: Path) -> None:
    def train() -> None:
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "a.pt")
        found = torch.load(tmp_path / "a.pt")
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])

    events = traced(train)
    assert [event.name for event in of(events, "checkpoint")] == [
        "torch.nn.Module.state_dict",
        "torch.optim.SGD.state_dict",
        "torch.save",
        "torch.load",
        "torch.nn.Module.load_state_dict",
        "torch.optim.SGD.load_state_dict",
    ]
    assert str(tmp_path) not in "".join(map(str, events))


def test_functions_of_torch_are_told_by_their_public_names_inside_their_modules() -> None:
    events = traced(loop, level="ops")
    relu = of(events, "op", "relu")[0]
    net = of(events, "module", "Net")[0]
    assert relu.name == "torch.nn.functional.relu"
    assert relu.parent == net.seq
    assert (relu.inputs, relu.dtype, relu.shape) == ("float32[8,8]", "float32", "8,8")
    linear = of(events, "op", "linear")[0]
    assert linear.parent == of(events, "module", "Linear")[0].seq
    entropy = of(events, "op", "cross_entropy")[0]
    assert json.loads(entropy.arguments)["reduction"] == "mean"


def test_what_an_optimizer_or_a_backward_pass_calls_inside_is_not_told() -> None:
    events = traced(loop, level="ops")
    kinds = {event.seq: event.kind for event in events}
    assert {kinds.get(event.parent) for event in of(events, "op")} == {None, "module"}


def test_a_number_that_a_function_returns_is_told() -> None:
    def train() -> None:
        loss = Net()(torch.randn(2, 4)).sum()
        assert loss.item() < 1e9

    (item,) = of(traced(train, level="ops"), "op", "Tensor.item")
    assert isinstance(item.value, float)


def test_a_mode_of_the_users_own_sees_what_it_saw() -> None:
    class Counting(torch.overrides.TorchFunctionMode):
        count = 0

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.count += 1
            return function(*args, **(kwargs or {}))

    def count(**options: Any) -> int:
        mode = Counting()
        if options:
            with mode:
                traced(loop, **options)
        else:
            with mode:
                loop()
        return mode.count

    counts = [count(), count(level="ops"), count(level="digests")]
    assert len(set(counts)) == 1


def test_tensors_of_every_kind_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    def train() -> None:
        fc = nn.Linear(4, 2)
        fc(torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)]))
        fc.to("meta")(torch.randn(2, 4, device="meta"))
        nn.LazyLinear(3)(torch.randn(2, 4))
        functional.relu(torch.randn(3, 3).to_sparse())
        torch.func.vmap(nn.Linear(4, 2))(torch.randn(3, 2, 4))
        with torch.inference_mode():
            nn.Linear(4, 2)(torch.randn(2, 4))

    events = traced(train, level="ops")
    assert len(of(events, "module")) == 4  # what a transform runs is no call with numbers
    assert of(events, "module")[0].inputs == "float32[2,*]"
    assert of(events, "module")[1].digest is None
    assert capsys.readouterr().err == ""


# -- which steps, and which events ----------------------------------------------------------------------------


def test_steps_that_are_not_whole_tell_of_the_loop_alone() -> None:
    events = traced(lambda: loop(6), level="ops", warm_up=1, every=2)
    whole = {event.step for event in events if event.flags & Flag.WHOLE}
    assert whole == {1, 3, 5}
    assert {
        event.step for event in events if event.kind in ("module", "op", "parameter", "gradient")
    } == whole
    assert len(of(events, "backward")) == 6


def test_only_what_is_wanted_is_told() -> None:
    wanted = {("module", "torch.nn.Linear"), ("loop", "torch.optim.AdamW.step"), ("parameter", "")}
    events = traced(loop, wanted=wanted)
    assert {(event.kind, event.name) for event in events if event.kind != "parameter"} == {
        ("module", "torch.nn.Linear"),
        ("loop", "torch.optim.AdamW.step"),
    }
    assert {event.parent for event in of(events, "module")} == {-1}
    assert len(of(events, "parameter")) == 18


def test_a_wanted_function_is_told_at_whatever_level() -> None:
    events = traced(loop, level="modules", wanted={("op", "torch.nn.functional.relu")})
    assert [event.name for event in events] == ["torch.nn.functional.relu"] * 3


@pytest.mark.parametrize(
    ("options", "text"),
    [({"level": "all"}, "level: 'all'"), ({"every": 0}, "every: 0"), ({"warm_up": -1}, "warm_up: -1")],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        Tracer(print, **options)


# -- the run is what it would have been -----------------------------------------------------------------------


def outcome(level: str | None) -> list[Any]:
    torch.manual_seed(3)
    losses: list[Tensor] = []

    def train() -> None:
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.BatchNorm1d(8), nn.Linear(8, 2))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        data = TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,)))
        for x, y in DataLoader(data, batch_size=4, shuffle=True):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        losses.extend(parameter.detach() for parameter in model.parameters())

    if level is None:
        train()
    else:
        traced(train, level=level)
    return [*losses, torch.get_rng_state()]


@pytest.mark.parametrize("level", LEVELS)
def test_weights_losses_and_random_numbers_are_the_same_to_the_last_bit(level: str) -> None:
    assert all(torch.equal(a, b) for a, b in zip(outcome(level), outcome(None), strict=True))


def hooks() -> list[object]:
    module, optimizer = sys.modules["torch.nn.modules.module"], torch.optim.Optimizer
    return [
        dict(vars(module)["_global_forward_hooks"]),
        dict(vars(module)["_global_forward_pre_hooks"]),
        dict(vars(module)["_global_forward_hooks_with_kwargs"]),
        dict(vars(sys.modules["torch.optim.optimizer"])["_global_optimizer_pre_hooks"]),
        dict(vars(sys.modules["torch.optim.optimizer"])["_global_optimizer_post_hooks"]),
        torch._C._len_torch_function_stack(),
        clip_grad_norm_.__wrapped__.__code__,
        torch.serialization.save.__code__,
        *(vars(optimizer)[name].__code__ for name in ("zero_grad", "state_dict", "__init__")),
        *(
            vars(nn.Module)[name].__code__
            for name in ("train", "eval", "zero_grad", "state_dict", "__call__")
        ),
        torch.autograd.backward.__code__,
        torch.distributed.all_reduce.__code__,
        DataLoader.__iter__.__code__,
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_is_left_on_torch(level: str) -> None:
    before = hooks()
    traced(loop, level=level)
    assert hooks() == before


def test_nothing_is_left_on_torch_after_an_exception() -> None:
    before = hooks()

    def train() -> None:
        with torch.device("cpu"):
            loop()
            raise KeyError

    with pytest.raises(KeyError):
        traced(train, level="ops")
    assert hooks() == before


def test_a_sink_that_raises_is_let_go_of_and_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    def sink(event: Event) -> None:
        raise OSError("no room")

    with Tracer(sink, level="ops"):
        loop()
    said = capsys.readouterr().err
    assert said.count("the trace is not complete") == 3
    assert said.count("the run is not traced any more") == 1


def test_a_tracer_that_is_stopped_as_a_step_ends_lets_the_run_go_on() -> None:
    before = hooks()
    tracer = Tracer(lambda event: None, on_step_over=lambda step: tracer.stop())
    tracer.start()
    loop()
    tracer.stop()
    with Tracer(lambda event: None):
        pass
    assert hooks() == before


def test_a_compiled_model_is_told_from_outside_and_compiled_once() -> None:
    compiled = 0

    def backend(graph: Any, inputs: Any) -> Any:
        nonlocal compiled
        compiled += 1
        return graph.forward

    def train() -> None:
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        fast = torch.compile(model, backend=backend)
        for x, _ in batches(3):
            fast(x).sum().backward()
            optimizer.step()

    try:
        events = traced(train, level="ops", every=2)
    finally:
        torch._dynamo.reset()
    assert compiled == 1
    assert [(event.step, event.subject) for event in of(events, "module")] == [(0, ""), (2, "")]
    assert all(event.flags & Flag.COMPILED for event in of(events, "module"))
    assert not of(events, "op")
    assert of(events, "parameter", subject="fc.weight")


# -- ranks ----------------------------------------------------------------------------------------------------

SCRIPT = """
import json, os, sys
import torch, torch.distributed as dist
from torch import nn
from ta_runtime.trace.tracer import Tracer

events = []
with Tracer(events.append):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        model(torch.randn(3, 4)).sum().backward()
        optimizer.step()
    value = torch.ones(2)
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    dist.broadcast(value, src=0)
    out = torch.empty(4)
    dist.all_gather_into_tensor(out, value)
    dist.all_to_all_single(torch.empty(2), value, [1, 1], [1, 1])
    pair = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(1), group=pair)
    (dist.send if rank == 0 else dist.recv)(value, 1 - rank)
    dist.barrier()
    dist.destroy_process_group()
with open(sys.argv[1] + os.environ["RANK"], "w") as file:
    json.dump([list(event) for event in events], file)
"""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[list[Event]]:
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    ended = pair(folder, "train.py", f"{folder}/events", timeout=60)
    assert [ran.returncode for ran in ended] == [0, 0], ended
    return [[Event(*row) for row in json.loads((folder / f"events{rank}").read_text())] for rank in range(2)]


def test_collectives_are_told_with_what_ranks_must_agree_on(ranks: list[list[Event]]) -> None:
    told = [
        (event.name.rpartition(".")[2], event.subject, event.inputs, json.loads(event.arguments or "{}"))
        for event in of(ranks[0], "collective")
    ]
    assert told == [
        ("all_reduce", "all", "float32[2]", {"op": "MAX"}),
        ("broadcast", "all", "float32[2]", {"src": 0}),
        ("all_gather_into_tensor", "all", "float32[4]; float32[2]", {}),
        (
            "all_to_all_single",
            "all",
            "float32[2]; float32[2]",
            {"input_split_sizes": [1, 1], "output_split_sizes": [1, 1]},
        ),
        ("all_reduce", "0,1", "float32[1]", {}),
        ("send", "all", "float32[2]", {"dst": 1}),
        ("barrier", "all", "", {}),
    ]


def test_each_rank_tells_of_itself_under_the_same_names(ranks: list[list[Event]]) -> None:
    first, second = ([event for event in events if event.kind != "collective"] for events in ranks)
    assert [event[:10] for event in first] == [event[:10] for event in second]
    assert [event.digest for event in of(first, "parameter")] == [
        event.digest for event in of(second, "parameter")
    ]
    assert {event.subject for event in of(first, "module")} == {"", "0"}
    assert {event.subject for event in of(first, "parameter")} == {"0.weight", "0.bias"}
    wrapper = of(first, "module", "DistributedDataParallel")[0]
    assert of(first, "module", "Sequential")[0].parent == wrapper.seq
