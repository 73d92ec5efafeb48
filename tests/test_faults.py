"""Whatever the training code does, the run's result stays what it would have been, and nothing of the audit fails."""

import copy
import gc
import io
import math
import pickle
import sys
import threading
import weakref
from collections import UserDict, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F
from test_bitwise import same
from torch import Tensor, nn
from torch.nn.modules import module as hooks
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

from ta_lint.core.finding import Finding
from ta_runtime import checks
from ta_runtime.audit.audit import Audit
from ta_runtime.audit.session import AuditFailed, Session
from ta_runtime.facts import Machine, Suspicion
from ta_runtime.incidents import Incident
from ta_runtime.measure.scalars import Readings, _Transfer
from ta_runtime.observers.forwards import Forwards
from ta_runtime.probes.patching import Patch
from ta_runtime.probes.places import Place
from ta_runtime.ranks import RankReport, merged
from ta_runtime.settings import resolve
from ta_runtime.snapshot.environment import settings


def audit(**options: Any) -> Audit:
    return Audit(resolve(**{"every_n_steps": 1, "rules": "ALL", "output": None, "live": False} | options))


def failures(watched: Audit) -> list[str]:
    return [finding.message for finding in watched.findings if finding.rule == "TA000"]


def check(run: Callable[[], Any], **options: Any) -> Audit:
    """Run it plainly and audited: the same comes out, nothing of the audit fails, and torch is as it was."""
    torch.manual_seed(0)
    plain = run(), torch.get_rng_state()
    before = attributes()
    watched = audit(**options)
    watched.start()
    try:
        torch.manual_seed(0)
        audited = run(), torch.get_rng_state()
    finally:
        watched.stop()
    assert same(plain, audited)
    assert failures(watched) == []
    assert attributes() == before
    return watched


def attributes() -> dict[str, Any]:
    """What a session replaces or registers, to compare what it leaves behind."""
    owners = [
        nn.Module, Tensor, nn.functional, torch, torch.nn.utils, torch.optim.Optimizer, torch.amp.GradScaler, DataLoader,
        torch.utils.data.dataloader._BaseDataLoaderIter, torch.optim.lr_scheduler.LRScheduler, torch.distributed,
        torch.optim.lr_scheduler.ReduceLROnPlateau,
    ]  # fmt: skip
    found = {
        f"{owner.__name__}.{name}": id(value)
        for owner in owners
        for name, value in vars(owner).items()
        if (callable(value) and not name.startswith("_"))
        or name in ("__init__", "__iter__", "__next__", "__call__")
    }
    found |= {
        f"code of {name}": id(getattr(nn.functional, name).__code__) for name in ("mse_loss", "cross_entropy")
    }
    tables = [name for name in vars(hooks) if name.startswith("_global_")]
    found |= {name: repr(getattr(hooks, name)) for name in tables}
    steps = sys.modules["torch.optim.optimizer"]  # the name in torch.optim is gone
    return found | {name: repr(getattr(steps, name)) for name in vars(steps) if name.startswith("_global_")}


def train(
    model: nn.Module,
    forward: Callable[[nn.Module], Any] = lambda model: model(torch.randn(4, 6)),
    *,
    steps: int = 4,
    optimizer: torch.optim.Optimizer | None = None,
) -> list[Any]:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        output = forward(model)
        loss = output if output.dim() == 0 else output.abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [model.state_dict()]


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


# -- models ---------------------------------------------------------------------------------------------------------


def test_lazy() -> None:
    def run() -> Any:
        model = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(2), nn.LazyBatchNorm1d())
        model(torch.randn(4, 6))
        return train(model)

    check(run)


def test_lazy_parameters_in_an_optimizer_before_the_first_forward() -> None:
    def run() -> Any:
        model = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.Linear(8, 2))
        return train(model, optimizer=torch.optim.AdamW(model.parameters()))

    check(run)


def test_meta() -> None:
    def run() -> Any:
        with torch.device("meta"):
            model = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 2))
            output = model(torch.zeros(4, dtype=torch.int64))
            loss = F.cross_entropy(output, torch.zeros(4, dtype=torch.int64))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss.backward()
        optimizer.step()
        return [output.shape]

    check(run)


def test_sparse() -> None:
    def run() -> Any:
        model = nn.Embedding(20, 4, sparse=True)
        ids = torch.tensor([1, 1, 5, 7])
        return train(model, lambda model: model(ids), optimizer=torch.optim.SparseAdam(model.parameters()))

    check(run)


def test_complex() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(6, 3, dtype=torch.complex64)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.fc(inputs.to(torch.complex64)).abs()

    check(lambda: train(Net()))


def test_quantised() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(6, 3)
            self.register_buffer("codes", torch.randint(-128, 127, (3,), dtype=torch.int8))
            self.register_buffer("packed", torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8))
            self.register_buffer("eight", torch.randn(3).to(torch.float8_e4m3fn))

        def forward(self, inputs: Tensor) -> Tensor:
            return self.fc(inputs) * self.codes + self.packed.dequantize() + self.eight.float()

    def run() -> Any:
        model = Net()
        train(model)
        return [model.fc.state_dict()]

    check(run)


def test_tied_and_frozen() -> None:
    def run() -> Any:
        model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6))
        model[1].weight = model[0].weight
        model[2].requires_grad_(False)
        return train(model, optimizer=torch.optim.AdamW(model.parameters()))

    check(run)


def test_no_parameters() -> None:
    def run() -> Any:
        image = torch.randn(3, 4, requires_grad=True)
        optimizer = torch.optim.Adam([image])
        for _ in range(3):
            loss = F.mse_loss(nn.Sequential(nn.ReLU(), nn.Flatten())(image), torch.zeros(3, 4))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [image.detach()]

    check(run)


@dataclass
class Output:
    logits: Tensor
    extra: Any = None


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: {"logits": x, "none": None},
        lambda x: Output(x),
        lambda x: None,
        lambda x: Pair(x, (x, [x])),
        lambda x: "text",
        lambda x: UserDict(logits=x),
        lambda x: (entry for entry in [x]),
    ],
    ids=["dict", "dataclass", "none", "namedtuple", "text", "userdict", "generator"],
)
def test_outputs_and_batches_of_any_kind(wrap: Callable[[Tensor], Any]) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(6, 3)
            self.last = torch.zeros(())

        def forward(self, first: Any, *, second: Any = None) -> Any:
            batch = next(first) if hasattr(first, "__next__") else self.given
            self.last = self.fc(batch)
            return wrap(self.last)

    def forward(model: nn.Module) -> Tensor:
        model.given = torch.randn(4, 6)
        output = model(wrap(model.given), second=wrap(model.given))
        if hasattr(output, "__next__"):
            assert next(output) is model.last
        return model.last  # type: ignore[return-value]

    check(lambda: train(Net(), forward))


def test_loaders_with_batches_of_any_kind() -> None:
    def collate(items: list[int]) -> Any:
        values = torch.tensor(items, dtype=torch.float32)[:, None].expand(-1, 6)
        complex_view = torch.complex(values, values).conj().imag
        sparse = values.to_sparse()
        return {"x": values, "nested": [Output(values, UserDict(y=values))], "empty": torch.empty(0, 3),
                "odd": [complex_view, sparse, values.bfloat16(), torch.tensor(1.0), None, "text"]}  # fmt: skip

    def run() -> Any:
        loader: DataLoader[Any] = DataLoader(range(12), batch_size=4, collate_fn=collate, shuffle=True)
        model = net()
        batches = (batch for _ in range(3) for batch in loader)
        return train(model, lambda model: model(next(batches)["x"]), steps=8)

    check(run)


def test_modules_that_compare_and_hash_in_their_own_way() -> None:
    class Odd(nn.Module):
        def __hash__(self) -> int:
            return 1

        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(6, 3)

        def __eq__(self, other: object) -> Any:
            raise TypeError("not to be compared")

        def __bool__(self) -> bool:
            raise TypeError("neither true nor false")

        def __len__(self) -> int:
            raise TypeError("no length")

        def forward(self, inputs: Tensor) -> Tensor:
            return self.fc(inputs)

    check(lambda: train(Odd()))


class Tracked(Tensor):
    """A tensor subclass whose results are of its class."""

    calls: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(getattr(func, "__name__", str(func)))
        assert getattr(func, "__module__", None) is None or not func.__module__.startswith("ta_runtime")
        return super().__torch_function__(func, types, args, kwargs or {})


def test_tensor_subclasses_as_inputs_losses_and_parameters() -> None:
    def run() -> Any:
        Tracked.calls.clear()
        model = nn.Linear(6, 3)
        model.bias = nn.Parameter(torch.randn(3).as_subclass(Tracked))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = F.mse_loss(model(torch.randn(4, 6).as_subclass(Tracked)), torch.zeros(4, 3))
            assert type(loss) is Tracked
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        called = [name for name in Tracked.calls if name in ("mse_loss", "backward", "linear")]
        return [{key: value.as_subclass(Tensor) for key, value in model.state_dict().items()}, called]

    check(run)


# -- optimizers -----------------------------------------------------------------------------------------------------


def test_a_step_that_calls_its_base_is_one_step() -> None:
    class Mine(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    def run() -> Any:
        model = net()
        return train(model, optimizer=Mine(model.parameters(), lr=0.1))

    assert check(run).session.step_count == 4


def test_optimizers_that_compare_hash_and_store_in_their_own_way() -> None:
    class Odd(torch.optim.SGD):
        __slots__ = ("mine",)
        __hash__ = None

        def __eq__(self, other: object) -> Any:
            raise TypeError("not to be compared")

    def run() -> Any:
        model = net()
        return train(model, optimizer=Odd(model.parameters(), lr=0.1))

    assert check(run).session.step_count == 4


def test_optimizers_built_late_groups_added_copies_made_and_steps_skipped() -> None:
    def run() -> Any:
        model = net()
        first = torch.optim.Adam(model[0].parameters())
        second = None
        copies = []
        for step in range(7):
            loss = F.mse_loss(model(torch.randn(4, 6)), torch.zeros(4, 2))
            loss.backward()
            first.step()
            if step == 2:
                second = torch.optim.SGD([model[2].bias], lr=0.1)
            if step == 4:
                second.add_param_group({"params": [model[2].weight], "lr": 0.01})
            if second is not None and step != 5:
                second.step()
            first.zero_grad()
            twin = copy.deepcopy(model)
            with torch.no_grad():
                twin[2].weight.zero_(), twin[2].bias.zero_()
            assert not twin(torch.randn(4, 6)).any()
            copies.append(pickle.loads(pickle.dumps(model)).state_dict())
            pickle.loads(pickle.dumps((first, second)))
        return [model.state_dict(), copies, first.state_dict()]

    check(run)


def test_a_model_with_functions_is_saved_and_loaded_in_the_middle_of_a_step() -> None:
    loss_function = F.cross_entropy

    def run() -> Any:
        model = net()
        model.loss = F.mse_loss
        model.other = loss_function

        def forward(model: Any) -> Tensor:
            output = model(torch.randn(4, 6))
            assert F.cross_entropy is loss_function
            buffer = io.BytesIO()
            torch.save(model, buffer)
            buffer.seek(0)
            loaded = torch.load(buffer, weights_only=False)
            assert loaded.loss is F.mse_loss
            assert torch.equal(loaded(torch.ones(4, 6)), model(torch.ones(4, 6)))
            return model.loss(output, torch.zeros(4, 2))

        return train(model, forward)

    check(run)


def test_a_loss_that_was_imported_by_name_is_seen() -> None:
    from torch.nn.functional import mse_loss

    seen = []
    watched = audit()
    watched.session._look_closer = lambda step: seen.extend(step.losses)
    watched.start()
    train(net(), lambda model: mse_loss(model(torch.randn(4, 6)), torch.zeros(4, 2)))
    watched.stop()
    assert [loss.function for loss in seen] == ["mse_loss"] * 4
    assert all(loss.value > 0 for loss in seen)


def test_without_a_torch_optimizer_each_backward_pass_is_a_step() -> None:
    def run() -> Any:
        model = net()
        for _ in range(200):
            F.mse_loss(model(torch.randn(4, 6)), torch.zeros(4, 2)).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None
        return [model.state_dict()]

    watched = check(run)
    assert watched.session.step_count == 200
    assert len(watched.session.window.losses) <= 64


# -- other uses of a model ------------------------------------------------------------------------------------------


def test_evaluation_between_steps() -> None:
    def run() -> Any:
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))

        def forward(model: nn.Module) -> Tensor:
            model.eval()
            with torch.no_grad():
                model(torch.randn(4, 6))
            with torch.inference_mode():
                F.mse_loss(model(torch.randn(4, 6)), torch.zeros(4, 2))
            model.train()
            return model(torch.randn(4, 6))

        return train(model, forward)

    check(run)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing(reentrant: bool) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.ReLU()) for _ in range(3)
            )

        def forward(self, inputs: Tensor) -> Tensor:
            for block in self.blocks:
                inputs = checkpoint(block, inputs, use_reentrant=reentrant)
            return inputs

    check(lambda: train(Net(), lambda model: model(torch.randn(4, 6, requires_grad=True))))


def test_functional_transforms() -> None:
    def run() -> Any:
        model = net()
        parameters = dict(model.named_parameters())

        def loss(parameters: Any, inputs: Tensor, target: Tensor) -> Tensor:
            return F.mse_loss(torch.func.functional_call(model, parameters, (inputs,)), target)

        def forward(model: nn.Module) -> Tensor:
            each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(
                {name: parameter.detach() for name, parameter in parameters.items()},
                torch.randn(4, 6),
                torch.randn(4, 2),
            )
            jacobian = torch.func.jacrev(lambda inputs: model(inputs))(torch.randn(6))
            return model(torch.randn(4, 6)) * (1 + jacobian.detach().sum() + each["0.bias"].sum())

        return train(model, forward)

    check(run)


def test_models_in_threads() -> None:
    def run() -> Any:
        model = net()

        def forward(model: nn.Module) -> Tensor:
            inputs = torch.randn(2, 4, 6)
            outputs: list[Any] = [None, None]

            def replica(index: int) -> None:
                outputs[index] = F.mse_loss(model(inputs[index]), torch.zeros(4, 2))

            threads = [threading.Thread(target=replica, args=(index,)) for index in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return torch.stack(outputs).mean()

        return train(model, forward)

    check(run)


def test_training_in_a_thread_is_seen() -> None:
    seen = []

    def run() -> Any:
        thread = threading.Thread(target=lambda: seen.append(train(net())))
        thread.start()
        thread.join()
        return [seen.pop()]

    watched = check(run)
    assert watched.session.step_count == 4
    assert not watched.session._pending
    assert len(watched.session.history.usages) == 1


def test_tracing_and_scripting() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(6, 2)

        def forward(self, inputs: Tensor, target: Tensor) -> Tensor:
            return F.mse_loss(torch.relu(self.fc(inputs)), target)

    def run() -> Any:
        model = Net()
        example = torch.randn(4, 6), torch.randn(4, 2)
        texts = []

        def forward(model: nn.Module) -> Tensor:
            traced = torch.jit.trace(model, example)
            scripted = torch.jit.script(model)
            graph = torch.fx.symbolic_trace(model)
            flat = torch.fx.experimental.proxy_tensor.make_fx(lambda inputs: model(inputs, example[1]))(
                example[0]
            )
            exported = torch.export.export(model, example)
            programs = [traced, scripted, graph, exported.module()]
            assert len({round(float(program(*example)), 5) for program in programs}) == 1
            texts.append([str(traced.graph), graph.code, flat.code, str(exported.graph)])
            assert next(node for node in graph.graph.nodes if "mse" in node.name).target is F.mse_loss
            return model(*example)

        return [
            *train(model, forward),
            [text[1:] for text in texts],
            [text[0].count("aten::") for text in texts],
        ]

    check(run)


def test_watched_functions_are_scripted_in_an_audited_step_and_after_it() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            inputs = F.scaled_dot_product_attention(inputs, inputs, inputs)
            return torch.log(1.5 + F.dropout(self.layer(inputs), 0.5, self.training).sigmoid()).sqrt()

    torch.jit.script(Net())
    watched = audit(every_n_steps=1)
    watched.start()
    from torch import log  # what a module has by name that is imported now

    def taken(inputs: Tensor) -> Tensor:
        return log(inputs)

    torch.jit.script(Net())
    watched.stop()
    torch.jit.script(Net())
    assert torch.jit.script(taken)(torch.ones(2)).tolist() == [0, 0]
    assert failures(watched) == []


# -- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_step_that_runs_out_of_memory_is_tried_again() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 2)
            self.calls = 0

        def forward(self, inputs: Tensor) -> Tensor:
            hidden = self.first(inputs)
            self.calls += 1
            if self.calls % 3 == 0:
                raise torch.OutOfMemoryError("no memory")
            if self.calls % 5 == 0:
                raise KeyboardInterrupt
            return self.second(hidden)

    def forward(model: nn.Module) -> Tensor:
        inputs = torch.randn(4, 6)
        while True:
            try:
                return model(inputs)
            except (torch.OutOfMemoryError, KeyboardInterrupt):
                continue

    check(lambda: train(Net(), forward, steps=8))


def test_a_step_that_raises_is_tried_again() -> None:
    class Moody(torch.optim.SGD):
        calls = 0

        def step(self, closure: Any = None) -> Any:
            self.calls += 1
            if self.calls % 2:
                raise RuntimeError("not now")
            return super().step(closure)

    class Worse(torch.optim.SGD):
        calls = 0

        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter -= group["lr"] * parameter.grad
            Worse.calls += 1
            if Worse.calls % 2:
                raise RuntimeError("not quite")

    def run() -> Any:
        model = net()
        for optimizer in (Moody(model.parameters(), lr=0.1), Worse(model.parameters(), lr=0.1)):
            for _ in range(4):
                optimizer.zero_grad()
                F.mse_loss(model(torch.randn(4, 6)), torch.zeros(4, 2)).backward()
                for _ in range(2):
                    try:
                        optimizer.step()
                        break
                    except RuntimeError:
                        continue
        return [model.state_dict()]

    check(run)


def test_a_check_that_raises_is_reported_once_and_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(fact: object) -> Iterator[Any]:
        calls.append(fact)
        raise ValueError("a bug")
        yield  # type: ignore[unreachable]

    calls: list[object] = []
    monkeypatch.setattr(checks, "enabled", lambda rules: [checks.Check("TA102", "gradients", bad)])
    watched = audit()
    watched.start()
    train(net())
    watched.stop()
    assert failures(watched) == ["the check of TA102 raised ValueError: a bug"]
    assert len(calls) == 1


def test_an_observer_that_keeps_failing_lets_go_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(self: Any, *args: Any) -> None:
        raise ValueError("a bug")

    before = attributes()
    backward = Tensor.backward
    monkeypatch.setattr(Forwards, "_record", bad)
    watched = audit(fail_level="note")
    watched.start()
    train(net())
    assert not watched.session.started
    assert Tensor.backward is backward
    [message] = failures(watched)
    assert "raised ValueError: a bug" in message
    assert any("kept failing" in what for what in watched.not_seen)
    watched.stop()
    assert attributes() == before


def test_no_device_comes_into_use_by_being_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are forked after it could not use it."""
    in_use = False

    def ask() -> tuple[int, int]:
        assert in_use
        return 9, 0

    monkeypatch.setattr(
        torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda")
    )
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: in_use)
    monkeypatch.setattr(torch.cuda, "get_device_capability", ask)
    session = Session(resolve())
    assert session.machine == Machine("cuda", None)
    in_use = True
    assert session.machine.has_tensor_cores


def test_a_machine_without_an_accelerator_is_none_where_torch_raises_for_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D8: torch 2.6 does, and the run did not start."""

    def ask(check_available: bool = False) -> torch.device:
        raise RuntimeError("Cannot access accelerator device when none is available.")

    monkeypatch.setattr(torch.accelerator, "current_accelerator", ask)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 0)
    assert Session(resolve()).machine == Machine(None)
    assert dict(settings())["autocast.cpu"] == "off"


def test_a_callback_that_raises_is_not_called_again() -> None:
    calls = []

    def callback(finding: Finding) -> None:
        calls.append(finding)
        raise ValueError("a bug")

    def run() -> Any:
        model = net()
        first = torch.optim.Adam(model.parameters(), weight_decay=0.1)
        second = torch.optim.Adam(model.parameters(), weight_decay=0.1)
        return train(model, optimizer=first, steps=1) + train(model, optimizer=second, steps=1)

    watched = check(run, on_finding=callback, rules=["TA401"])
    assert len(watched.findings) == 2
    assert len(calls) == 1


def test_a_run_that_is_to_fail_fails_after_its_step() -> None:
    model = net()
    watched = audit(rules=["TA401"], fail_level="note")
    watched.start()
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
    before = model[0].weight.clone()
    with pytest.raises(AuditFailed, match="TA401"):
        train(model, optimizer=optimizer)
    assert not torch.equal(model[0].weight, before)
    watched.stop()


def test_a_finding_between_steps_stops_the_run_at_the_next_step() -> None:
    """It is judged when the next model is built, where nothing is to be raised."""
    watched = audit(rules=["TA100"], fail_level="error", every_n_steps=0)
    watched.start()
    with pytest.raises(AuditFailed, match="TA100"):  # noqa: PT012
        train(net(), lambda model: model(torch.full((4, 6), math.inf)), steps=1)
        model = net()
        assert [finding.rule for finding in watched.findings] == ["TA100"]
        train(model, steps=1)
    watched.stop()


def test_a_run_that_is_to_fail_tells_all_that_the_step_showed_before() -> None:
    told: list[str] = []
    model = nn.Sequential(nn.Embedding(8, 6), nn.Linear(6, 2))
    watched = audit(rules=["TA401", "TA403"], fail_level="note", on_finding=lambda new: told.append(new.rule))
    watched.start()
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
    with pytest.raises(AuditFailed):
        train(model, lambda model: model(torch.arange(8)), optimizer=optimizer)
    watched.stop()
    assert sorted(told) == ["TA401", "TA403"]


def test_a_flush_between_steps_leaves_the_step_that_begins_alone() -> None:
    watched = audit()
    steps: list[Any] = []
    watched.session._look_closer = steps.append
    watched.start()
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer=optimizer, steps=2)
    watched.session.flush()
    train(model, optimizer=optimizer, steps=2)
    watched.stop()
    assert [step.complete for step in steps] == [True] * 4


def test_numbers_that_have_not_arrived_are_waited_for_at_the_end() -> None:
    class Late:
        def query(self) -> bool:
            return False

        def synchronize(self) -> None:
            vector.fill_(3.0)

    received: list[float] = []
    vector, readings = torch.zeros(1), Readings()
    readings._transfers.append(_Transfer(vector, Late(), received.extend))
    assert not readings.arrived
    readings.deliver()
    assert received == [3.0]


def test_an_optimizer_that_takes_the_place_of_another_has_no_past() -> None:
    watched = audit(rules=["TA401"])
    watched.start()
    places: set[int] = set()
    for number in range(200):
        model = nn.Linear(2, 2)
        optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1 if number > 100 else 0.0)
        again = id(optimizer) in places
        places.add(id(optimizer))
        train(model, lambda model: model(torch.ones(1, 2)), optimizer=optimizer, steps=1)
        assert watched.session.window.index == number + 1  # nor is the other one waited for
        assert watched.session.history.of(optimizer).log_norms.count <= 1
        if again and number > 100:
            break
        del model, optimizer
        gc.collect(
            1
        )  # a model and its optimizer are a young cycle; a full collection takes a tenth of a second
    assert again
    assert [finding.rule for finding in watched.findings] == ["TA401"]
    watched.stop()


def test_what_another_optimizer_stepped_on_is_not_taken_for_that_of_the_one_watched() -> None:
    model, other = net(), net()
    optimizer, theirs = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, other))
    seen: list[tuple[float | None, int, float | None]] = []
    watched = Audit(resolve(every_n_steps=0, live=False), models=[model], optimizers=[optimizer])
    remember = watched.session._remember

    def noted(window: Any) -> None:
        seen.extend((each.loss, each.backwards, each.before_clipping) for each in window.gradients)
        remember(window)

    watched.session._remember = noted
    watched.start()
    for _ in range(3):
        (other(torch.ones(2, 6)).sum() * 0 + 7).backward()
        nn.utils.clip_grad_norm_(other.parameters(), 1.0)
        theirs.step()
        (model(torch.ones(2, 6)).sum() * 0 + 5).backward()
        optimizer.step()
    watched.stop()
    assert seen == [(5.0, 1, None)] * 3


def test_the_norm_before_a_clipping_is_known_however_the_run_came_by_the_function() -> None:
    clip = nn.utils.clip_grad_norm_
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen: list[float | None] = []
    norms: list[float] = []
    watched = Audit(resolve(every_n_steps=0, live=False))
    remember = watched.session._remember

    def noted(window: Any) -> None:
        seen.extend(each.before_clipping for each in window.gradients)
        remember(window)

    watched.session._remember = noted
    watched.start()
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 6)).square().sum().backward()
        norms.append(float(clip(model.parameters(), 0.01)))
        optimizer.step()
    watched.stop()
    assert seen == norms


def test_a_scaler_that_skips_a_step_while_the_session_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(self: Any, *args: Any) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(Session, "_close", bad)
    watched = audit()
    watched.start()
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.full((4, 6), math.inf)).sum()).backward()
    scaler.step(optimizer)
    watched.stop()
    assert len(failures(watched)) == 1


def test_what_is_masked_in_place_is_not_taken_for_the_output_of_the_layer() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scores, self.hidden, self.out = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.relu, self.pause = nn.ReLU(inplace=True), nn.Dropout(0.5, inplace=True)

        def forward(self, values: Tensor) -> Tensor:
            scores = self.scores(values)
            scores.masked_fill_(torch.eye(4, dtype=torch.bool), -math.inf)
            hidden: Tensor = self.out(self.relu(self.pause(self.hidden(scores.softmax(-1)))))
            return hidden

    watched = audit()
    steps: list[Any] = []
    watched.session._look_closer = steps.append
    watched.start()
    train(Masked(), lambda model: model(torch.randn(4, 4)), steps=1)
    watched.stop()
    calls = steps[0].forwards[0].calls[:-1]
    assert [(type(call.module).__name__, call.outputs[0].norm is None) for call in calls] == [
        ("Linear", True), ("Linear", False), ("Dropout", False), ("ReLU", False), ("Linear", False),
    ]  # fmt: skip


def test_a_chain_that_several_ranks_saw_is_one_incident_of_the_first() -> None:
    def incident(rule: str, line: int, step: int, order: int) -> Incident:
        place = Place("train.py", line)
        return Incident(rule, Suspicion(place, "broken", cause="non-finite", order=order), step, step)

    ours, theirs = incident("TA100", 9, 4, 3), incident("TA101", 5, 4, 1)
    [found] = merged([ours], {1: RankReport([theirs])})
    assert (found.rule, found.ranks, found.first_step) == ("TA101", {0, 1}, 4)
    assert found.followers == [(Place("train.py", 9), "TA100: broken")]
    assert theirs.followers == []


def test_sessions_one_after_the_other_and_inside_each_other_leave_nothing_behind() -> None:
    before = attributes()
    for _ in range(3):
        outer, inner = audit(), audit(every_n_steps=2)
        outer.start()
        train(net())
        inner.start()
        train(net())
        inner.stop()
        train(net())
        outer.stop()
        assert failures(outer) == failures(inner) == []
        assert attributes() == before


def test_another_library_that_wraps_what_the_session_wrapped() -> None:
    calls = []
    original = Tensor.backward
    watched = audit()
    watched.start()
    ours = Tensor.backward

    def theirs(self: Tensor, *args: Any, **kwargs: Any) -> None:
        calls.append(1)
        ours(self, *args, **kwargs)

    Tensor.backward = theirs
    try:
        train(net())
        watched.stop()
        assert Tensor.backward is theirs
        train(net())
        Tensor.backward = ours
        train(net())
        assert len(calls) == 8
    finally:
        Tensor.backward = original


def test_a_library_that_has_replaced_a_loss_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    original = F.mse_loss

    def theirs(left: Tensor, right: Tensor) -> Tensor:
        return original(left, right) * 2

    monkeypatch.setattr(F, "mse_loss", theirs)
    check(lambda: train(net(), lambda model: F.mse_loss(model(torch.randn(4, 6)), torch.zeros(4, 2))))
    assert F.mse_loss is theirs


@pytest.mark.parametrize("every_n_steps", [1, 2, 3])
def test_sessions_whose_audited_steps_begin_and_end_in_any_order(every_n_steps: int) -> None:
    before = attributes()
    first, second = audit(every_n_steps=every_n_steps), audit(every_n_steps=every_n_steps)
    first.start()
    second.start()
    train(net(), lambda model: F.mse_loss(model(torch.randn(4, 6)), torch.zeros(4, 2)), steps=7)
    codes = {name: value for name, value in attributes().items() if name.startswith("code of")}
    second.stop()
    first.stop()
    assert failures(first) == failures(second) == []
    assert attributes() == before
    assert every_n_steps == 1 or codes.items() <= before.items()


def test_a_session_that_ends_in_a_hook_lets_other_hooks_run() -> None:
    """Torch walks over its table of hooks while it calls them."""
    before, calls = attributes(), []
    watched = audit(rules=["TA401"], on_finding=lambda finding: watched.stop())  # type: ignore[has-type]
    watched.start()
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
    steps = sys.modules["torch.optim.optimizer"]
    theirs = steps.register_optimizer_step_post_hook(lambda *_: calls.append(1))
    try:
        train(model, optimizer=optimizer)
    finally:
        theirs.remove()
    assert len(calls) == 4
    assert not watched.session.started
    watched.stop()
    assert attributes() == before


def test_an_observer_that_keeps_failing_while_models_are_built_leaves_their_hooks_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def bad(self: Any, *args: Any) -> None:
        raise ValueError("a bug")

    before = attributes()
    monkeypatch.setattr(Session, "_judge_arrived", bad)
    copies = [copy.deepcopy(nn.ReLU()) for _ in range(4)]
    watched = audit()
    watched.start()
    theirs = hooks.register_module_module_registration_hook(lambda *_: None)
    try:
        holder = nn.Module()
        for number, layer in enumerate(copies):
            holder.add_module(str(number), layer)
    finally:
        theirs.remove()
    assert not watched.session.started
    watched.stop()
    assert attributes() == before


def test_a_patch_is_undone_exactly() -> None:
    class Base:
        def method(self) -> int:
            return 1

    class Child(Base):
        pass

    calls: list[object] = []
    patch = Patch(Child, "method", lambda call: calls.append(call.args[0]))
    child = Child()
    assert child.method() == Base().method() == 1
    assert calls == [child]
    patch.undo()
    assert "method" not in vars(Child)


def test_nothing_of_the_run_is_kept_alive() -> None:
    watched = audit()
    watched.start()
    references = []
    for _ in range(3):
        model = net()
        optimizer = torch.optim.AdamW(model.parameters())
        train(model, optimizer=optimizer)
        references += [weakref.ref(model), weakref.ref(optimizer)]
        del model, optimizer
    net()
    gc.collect()
    assert [reference() for reference in references] == [None] * 6
    watched.stop()
