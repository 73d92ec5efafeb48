"""The checks of models, optimizers and hardware on plain facts, where the machine or a number decides."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from observed import observed
from torch import nn

from ta_runtime import checks, facts
from ta_runtime.audit import session
from ta_runtime.facts import (
    Copy,
    Filters,
    Forward,
    LayerCall,
    Loader,
    Machine,
    Model,
    Run,
    Step,
    Suspicion,
    Update,
    Value,
)
from ta_runtime.facts.history import History
from ta_runtime.naming import Names
from ta_runtime.probes.places import Place

H100 = Machine("cuda", (9, 0))
PASCAL = Machine("cuda", (6, 1))
CPU = Machine(None)
HERE = Place("train.py", 3)


def ask(rule: str, fact: str, value: object) -> list[Suspicion]:
    [check] = [check for check in checks.load(rule) if check.fact == fact]
    return [said for said in check.function(value) if isinstance(said, Suspicion)]


def module_of(rule: str) -> ModuleType:
    return checks.module_of(rule)


def values(
    *shapes: tuple[int, ...], device: str, dtype: torch.dtype, channels_last: bool = False
) -> list[Value]:
    kind = torch.device(device)
    return [Value("", torch.Size(shape), dtype, kind, channels_last=channels_last) for shape in shapes]


def a_step(
    module: nn.Module,
    given: tuple[int, ...],
    result: tuple[int, ...],
    *,
    machine: Machine = H100,
    device: str = "cuda",
    dtype: torch.dtype = torch.float32,
    autocast: torch.dtype | None = None,
    channels_last: bool = False,
    beside: list[LayerCall] | None = None,
) -> Step:
    """A step with one forward pass of a model that is one layer, of which nothing was really computed."""
    names = Names()
    names.add(module)
    inputs = values(given, device=device, dtype=dtype, channels_last=channels_last)
    outputs = values(result, device=device, dtype=autocast or dtype)
    call = LayerCall(module, names, module, True, inputs, outputs)
    model = Model(module, HERE, names, machine)
    forward = Forward(
        model, HERE, True, True, autocast, inputs=inputs, outputs=outputs, calls=[call, *(beside or [])]
    )
    return Step(0, HERE, machine, forwards=[forward])


def on_meta(layer: Callable[..., nn.Module], *sizes: int, **options: Any) -> nn.Module:
    return layer(*sizes, device="meta", **options)


# -- multiplications ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "given", "result", "count"),
    [
        (nn.Linear(3, 5), (2, 7, 3), (2, 7, 5), 2 * 7 * 3 * 5),
        (nn.Conv2d(4, 6, 3, groups=2), (1, 4, 5, 5), (1, 6, 3, 3), 6 * 9 * 2 * 9),
        (nn.ConvTranspose1d(4, 6, 2), (1, 4, 5), (1, 6, 6), 4 * 5 * 6 * 2),
        (nn.LSTM(3, 5, batch_first=True), (2, 7, 3), (2, 7, 5), 2 * 7 * 4 * 5 * (3 + 5)),
        (nn.MultiheadAttention(4, 2), (7, 2, 4), (7, 2, 4), 14 * 4 * 16),
        (nn.LayerNorm(5), (2, 5), (2, 5), 0),
        (nn.ReLU(), (2, 5), (2, 5), 0),
    ],
)
def test_multiplications_of_a_call(
    module: nn.Module, given: tuple[int, ...], result: tuple[int, ...], count: int
) -> None:
    step = a_step(module, given, result)
    assert step.forwards[0].calls[0].multiplications == count


def test_an_embedding_multiplies_nothing() -> None:
    assert (
        a_step(nn.Embedding(16, 8), (2, 16), (2, 16, 8), dtype=torch.int64)
        .forwards[0]
        .calls[0]
        .multiplications
        == 0
    )


# -- TA200: sizes and tensor cores --------------------------------------------------------------------------------

ROWS = 4096


def head_step(inputs: int, outputs: int, **options: Any) -> Step:
    return a_step(on_meta(nn.Linear, inputs, outputs), (ROWS, inputs), (ROWS, outputs), **options)


def test_a_vocabulary_as_the_tokenizer_left_it_is_found_under_autocast_and_in_half_precision() -> None:
    for options in ({"autocast": torch.bfloat16}, {"autocast": torch.float16}, {"dtype": torch.bfloat16}):
        [suspicion] = ask("TA200", "step", head_step(768, 50257, **options))
        assert suspicion.evidence["sizes"] == "768x50257"


@pytest.mark.parametrize(
    "step",
    [
        head_step(768, 50257),
        head_step(768, 50257, autocast=torch.bfloat16, machine=PASCAL),
        head_step(768, 50257, autocast=torch.bfloat16, machine=CPU),
        head_step(768, 50257, autocast=torch.bfloat16, device="cpu"),
        head_step(768, 50304, autocast=torch.bfloat16),
        head_step(8192, 10, autocast=torch.bfloat16),
        head_step(100, 100, autocast=torch.bfloat16),
        a_step(
            on_meta(nn.Conv2d, 3, 64, kernel_size=7),
            (64, 3, 224, 224),
            (64, 64, 218, 218),
            autocast=torch.bfloat16,
        ),
        a_step(
            on_meta(nn.Conv2d, 300, 300, kernel_size=3, groups=300),
            (64, 300, 224, 224),
            (64, 300, 222, 222),
            autocast=torch.bfloat16,
        ),
    ],
    ids=[
        "float32",
        "no tensor cores",
        "no device",
        "on the CPU",
        "aligned",
        "10 classes",
        "small",
        "stem",
        "depthwise",
    ],
)
def test_sizes_that_do_not_matter_are_silent(step: Step) -> None:
    assert not ask("TA200", "step", step)


def test_a_layer_with_a_small_share_of_the_work_is_silent() -> None:
    body = on_meta(nn.Linear, 8192, 8192)
    cuda = {"device": "cuda", "dtype": torch.float32}
    call = LayerCall(
        body, Names(), body, True, values((32 * ROWS, 8192), **cuda), values((32 * ROWS, 8192), **cuda)
    )
    assert ask("TA200", "step", head_step(512, 1001, autocast=torch.bfloat16))
    assert not ask("TA200", "step", head_step(512, 1001, autocast=torch.bfloat16, beside=[call]))


# -- TA201: the order of convolutions -----------------------------------------------------------------------------


def convolution_step(**options: Any) -> Step:
    shape = (32, 64, 128, 128)
    return a_step(on_meta(nn.Conv2d, 64, 64, kernel_size=3, padding=1), shape, shape, **options)


def test_channels_first_convolutions_are_found_in_half_precision_on_tensor_cores() -> None:
    assert ask("TA201", "step", convolution_step(autocast=torch.float16))
    assert ask("TA201", "step", convolution_step(dtype=torch.bfloat16))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"autocast": torch.float16, "machine": PASCAL},
        {"autocast": torch.float16, "machine": CPU},
        {"autocast": torch.float16, "device": "cpu"},
        {"autocast": torch.float16, "channels_last": True},
    ],
    ids=["float32", "no tensor cores", "no device", "on the CPU", "input in channels-last order"],
)
def test_convolutions_whose_order_does_not_matter_are_silent(options: dict[str, object]) -> None:
    assert not ask("TA201", "step", convolution_step(**options))


def test_a_weight_in_channels_last_order_is_enough_and_little_work_is_silent() -> None:
    layer = nn.Conv2d(64, 64, 3, padding=1).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    shape = (32, 64, 128, 128)
    assert not ask("TA201", "step", a_step(layer, shape, shape, autocast=torch.float16))
    small = (1, 64, 8, 8)
    assert not ask(
        "TA201", "step", a_step(nn.Conv2d(64, 64, 3, padding=1), small, small, autocast=torch.float16)
    )


def test_a_value_knows_the_order_of_its_dimensions() -> None:
    images = torch.randn(2, 3, 4, 4)
    assert not Value.of("", images).channels_last
    assert Value.of("", images.contiguous(memory_format=torch.channels_last)).channels_last


# -- TA202: devices -----------------------------------------------------------------------------------------------


def split(*modules: nn.Module) -> Model:
    """`meta` stands in for the accelerator."""
    return Model(nn.Sequential(*modules), HERE, Names(), Machine("meta"))


def test_a_layer_that_was_left_on_the_cpu_is_found() -> None:
    [suspicion] = ask("TA202", "model", split(on_meta(nn.Linear, 4, 4), nn.Linear(4, 4), nn.BatchNorm1d(4)))
    assert suspicion.evidence == {"layers on the CPU": 2, "first": "layer `1`, layer `2`"}


def test_a_split_model_is_found_although_its_call_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "machine", lambda: Machine("meta"))
    code = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to("meta")
model[1] = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(2, 4, device="meta")).sum().backward()
optimizer.step()
"""
    assert [finding.site.line for finding in observed(code, tmp_path, rules="TA202")] == [5]


def hooked(module: nn.Module, name: str = "_hf_hook") -> nn.Module:
    setattr(module, name, object())
    return module


def prehooked(module: nn.Module) -> nn.Module:
    module.register_forward_pre_hook(lambda module, args: None)
    return module


@pytest.mark.parametrize(
    "model",
    [
        split(on_meta(nn.Linear, 4, 4), on_meta(nn.Linear, 4, 4)),
        split(nn.Linear(4, 4), nn.Linear(4, 4)),
        split(on_meta(nn.Linear, 4, 4), nn.ReLU()),
        split(on_meta(nn.Linear, 4, 4), nn.Embedding(4, 4)),
        split(on_meta(nn.Linear, 4, 4), hooked(nn.Linear(4, 4))),
        split(hooked(on_meta(nn.Linear, 4, 4), "hf_device_map"), nn.Linear(4, 4)),
        split(on_meta(nn.Linear, 4, 4), prehooked(nn.Linear(4, 4))),
    ],
    ids=["moved", "not moved", "no parameters", "embedding", "accelerate", "device map", "pre-hook"],
)
def test_a_model_that_is_meant_to_be_split_or_is_not_is_silent(model: Model) -> None:
    assert not ask("TA202", "model", model)


# -- TA203: float32 -----------------------------------------------------------------------------------------------


def test_float32_matrix_multiplications_are_found_on_tensor_cores_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [suspicion] = ask("TA203", "step", head_step(1024, 1024))
    assert suspicion.evidence == {"share of multiplications": 1.0}
    assert not ask("TA203", "step", head_step(1024, 1024, machine=PASCAL))
    assert not ask("TA203", "step", head_step(1024, 1024, autocast=torch.bfloat16))
    assert not ask("TA203", "step", head_step(1024, 1024, dtype=torch.bfloat16))
    assert not ask("TA203", "step", head_step(64, 64))
    assert not ask("TA203", "step", convolution_step())
    lstm = nn.LSTM(512, 1024, device="meta")
    assert not ask("TA203", "step", a_step(lstm, (ROWS, 1, 512), (ROWS, 1, 1024)))
    attention = nn.MultiheadAttention(512, 8, device="meta")
    assert ask("TA203", "step", a_step(attention, (ROWS, 1, 512), (ROWS, 1, 512)))


@pytest.mark.parametrize("matmul", ["tf32", "none", "ieee"])
@pytest.mark.parametrize("general", ["tf32", "none", "ieee"])
def test_tf32_may_be_allowed_in_several_ways(
    matmul: str, general: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends = SimpleNamespace(
        cuda=SimpleNamespace(matmul=SimpleNamespace(fp32_precision=matmul)), fp32_precision=general
    )
    allowed = matmul == "tf32" or (matmul == "none" and general == "tf32")
    monkeypatch.setattr(torch, "backends", backends)
    assert module_of("TA203").tf32_allowed() == allowed


def test_tf32_as_it_was_allowed_before_torch_2_9(monkeypatch: pytest.MonkeyPatch) -> None:
    for allowed in (True, False):
        matmul = SimpleNamespace(allow_tf32=allowed)
        monkeypatch.setattr(torch, "backends", SimpleNamespace(cuda=SimpleNamespace(matmul=matmul)))
        assert module_of("TA203").tf32_allowed() == allowed


# -- TA204: waiting for data --------------------------------------------------------------------------------------


def run_with(**options: Any) -> Run:
    usual = {
        "workers": 0,
        "is_measured": True,
        "trained": 100,
        "waited": 5.0,
        "stepping": 10.0,
        "asked": 100,
        "idle": 100,
    }
    loaders = [Loader(HERE, loader=lambda: None, **(usual | options))]
    return Run(steps=100, machine=CPU, loaders=loaders, history=History())


def test_a_loader_that_half_of_a_step_is_spent_on_is_found() -> None:
    [suspicion] = ask("TA204", "run", run_with())
    assert suspicion.evidence == {"share of step": 0.5, "ms per batch": 50.0}


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 2},
        {"workers": None},
        {"trained": 5},
        {"waited": 1.0},
        {"waited": 0.1, "stepping": 0.15},
        {"idle": 20},
        {"asked": 0, "idle": 0},
    ],
    ids=[
        "workers",
        "unknown",
        "few batches",
        "small share",
        "fast batches",
        "the device is busy",
        "not looked at",
    ],
)
def test_a_loader_that_costs_nothing_is_silent(options: dict[str, object]) -> None:
    assert not ask("TA204", "run", run_with(**options))


# -- TA205: copies ------------------------------------------------------------------------------------------------


def copy_step(*, target: str = "cuda", pinned: bool = False, loader: bool = True) -> Step:
    built = Place("train.py", 1) if loader else None
    copy = Copy(HERE, target, non_blocking=True, is_pinned=pinned, loader=built)
    return Step(0, HERE, H100, copies=[copy])


def test_a_copy_of_a_batch_that_is_not_pinned_is_found_and_names_its_loader() -> None:
    [suspicion] = ask("TA205", "step", copy_step())
    assert suspicion.place == HERE
    assert suspicion.related == ((Place("train.py", 1), "the loader is made here"),)


def test_copies_that_are_pinned_or_not_of_a_loader_or_not_to_cuda_are_silent() -> None:
    assert not ask("TA205", "step", copy_step(pinned=True))
    assert not ask("TA205", "step", copy_step(loader=False))
    assert not ask("TA205", "step", copy_step(target="meta"))


def test_a_copy_is_noted_with_the_loader_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[Copy] = []

    def note(step: Step) -> list[Suspicion]:
        noted.extend(step.copies)
        return []

    monkeypatch.setattr(session, "machine", lambda: Machine("meta"))
    monkeypatch.setattr(module_of("TA205"), "check_step", note)
    checks.load.cache_clear()
    observed(
        """\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(4, 8)), batch_size=2)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    x.to("meta", non_blocking=True)
    (x + 1).to("meta", non_blocking=True)
    x.to("meta")
    model(x).sum().backward()
    optimizer.step()
""",
        tmp_path,
        rules="TA205",
    )
    checks.load.cache_clear()
    assert [copy.place.line for copy in noted] == [8, 9, 8, 9]
    assert [copy.loader is not None for copy in noted] == [True, False, True, False]
    assert noted[0].loader.line == 4
    assert {copy.target for copy in noted} == {"meta"}


# -- TA207: the CPU -----------------------------------------------------------------------------------------------


def cpu_step(device: str = "cpu", machine: Machine = H100, size: int = 1024) -> Step:
    return a_step(nn.Linear(size, size), (ROWS, size), (ROWS, size), device=device, machine=machine)


def test_a_model_on_the_cpu_beside_an_idle_cuda_device_is_found() -> None:
    assert ask("TA207", "step", cpu_step())
    assert not ask("TA207", "step", cpu_step(machine=CPU))
    assert not ask("TA207", "step", cpu_step(device="cuda"))
    assert not ask("TA207", "step", cpu_step(size=16))


@pytest.mark.parametrize("size", [1024, 64])
def test_a_run_on_the_cpu_beside_a_cuda_device(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "machine", lambda: H100)
    code = f"""\
import torch

model = torch.nn.Linear({size}, {size})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(300, {size})).square().mean().backward()
optimizer.step()
"""
    found = observed(code, tmp_path, rules="TA200 TA201 TA203 TA207")
    assert [(finding.site.line, finding.rule) for finding in found] == (
        [(3, "TA207")] if size == 1024 else []
    )


# -- what the user can change ----------------------------------------------------------------------------------


class Theirs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 4, padding=2), nn.BatchNorm2d(8))


@pytest.mark.parametrize("rule", ["TA400", "TA404"])
def test_layers_inside_a_model_class_of_a_library_are_silent(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(nn.Sequential(Theirs()), HERE, Names(), CPU)
    assert ask(rule, "model", model)
    monkeypatch.setattr(facts.model, "of_class", lambda kind: None)
    assert not ask(rule, "model", model)


def test_a_lazy_model_and_one_on_meta_are_judged_without_numbers() -> None:
    for module in (
        nn.Sequential(nn.LazyConv2d(8, 4, padding=2), nn.LazyBatchNorm2d()),
        on_meta(nn.Linear, 4, 4),
    ):
        for rule in ("TA202", "TA400", "TA404"):
            ask(rule, "model", Model(module, HERE, Names(), CPU))


# -- TA405: filters -----------------------------------------------------------------------------------------------


def filter_step(*norms: float, change: float = 0.1, had_gradient: bool = True) -> Step:
    layer = nn.Conv2d(1, len(norms), 3)
    measured = Filters("weight", layer.weight, Model(layer, HERE, Names(), CPU), norms)
    update = Update(layer.weight, None, True, had_gradient, 0.1, 1.0, change)
    return Step(0, HERE, CPU, filters=[measured], updates=[update])


def test_filters_that_are_zero_among_others_are_counted() -> None:
    [suspicion] = ask("TA405", "step", filter_step(1.0, 0.0, 0.5, 1e-9))
    assert suspicion.evidence == {"dead filters": 2, "filters": 4, "first": "weight"}


def test_small_all_zero_and_frozen_filters_are_silent() -> None:
    assert not ask("TA405", "step", filter_step(1.0, 1e-3))
    assert not ask("TA405", "step", filter_step(0.0, 0.0))
    assert not ask("TA405", "step", filter_step(1.0, 0.0, change=0.0))
    assert not ask("TA405", "step", filter_step(1.0, 0.0, had_gradient=False))
    assert not ask("TA405", "step", filter_step(float("nan"), 0.0))
