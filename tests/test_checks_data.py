"""Checks of data and graph on plain facts: thresholds, other devices, other ranks."""

import gc
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, WeightedRandomSampler

import ta_runtime.checks.ta212_unused_gradient_accumulation as ta212
import ta_runtime.checks.ta300_input_device_mismatch as ta300
import ta_runtime.checks.ta301_suspicious_input_range as ta301
import ta_runtime.checks.ta302_flat_input as ta302
import ta_runtime.checks.ta304_tiny_batch_with_batchnorm as ta304
import ta_runtime.checks.ta313_repeated_batch as ta313
import ta_runtime.checks.ta500_unused_layer as ta500
import ta_runtime.checks.ta511_unchanged_parameter as ta511
from ta_runtime.facts import (
    Forward,
    Gradients,
    LayerCall,
    Loader,
    Machine,
    Model,
    Optimizer,
    Pass,
    Run,
    Step,
    Suspicion,
    Told,
    Update,
    Value,
)
from ta_runtime.facts.history import History
from ta_runtime.naming import Names
from ta_runtime.observers.loaders import LoaderObserver, _bytes, _draws_once, _Pass
from ta_runtime.probes.places import Place

LINE = Place("train.py", 7)
CPU = Machine(None)


def value(
    shape: tuple[int, ...], dtype: torch.dtype = torch.float32, device: str = "cpu", **numbers: float
) -> Value:
    return Value("x", torch.Size(shape), dtype, torch.device(device), **numbers)


def forward(
    module: nn.Module, inputs: list[Value], calls: Iterable[LayerCall] = (), *, complete: bool = True
) -> Forward:
    model = Model(module, LINE, Names(), CPU)
    return Forward(model, LINE, True, True, None, inputs, calls=list(calls), complete=complete)


def call(module: nn.Module, *inputs: Value, raised: bool = False) -> LayerCall:
    return LayerCall(module, Names(), module, True, list(inputs), raised=raised)


def step(*forwards: Forward, history: History | None = None) -> Step:
    return Step(0, LINE, CPU, forwards=list(forwards), history=history or History())


# -- TA300 ----------------------------------------------------------------------------------------------------


def crashed(module: nn.Module, given: Value) -> Step:
    return step(forward(module, [given], [call(module, given, raised=True)], complete=False))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_batch_on_another_device_is_found_when_the_pass_raised(dtype: torch.dtype) -> None:
    [found] = ta300.check_step(crashed(nn.Linear(4, 2), value((8, 4), dtype, "cuda:0")))
    assert found.place == LINE
    assert found.evidence["input"] == "cuda:0"


def test_what_ran_is_not_found_whatever_the_devices() -> None:
    module, given = nn.Linear(4, 2), value((8, 4), device="cuda:0")
    assert not list(ta300.check_step(step(forward(module, [given], [call(module, given)]))))


def test_scalars_and_lengths_may_be_elsewhere() -> None:
    for given in (value((), device="cuda:0"), value((8,), torch.int64, "cuda:0")):
        assert not list(ta300.check_step(crashed(nn.Linear(4, 2), given)))


def test_models_whose_inputs_are_moved_by_hooks_or_that_span_devices_are_passed_over() -> None:
    hooked = nn.Linear(4, 2)
    hooked._hf_hook = object()
    split = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 2, device="meta"))
    for module in (hooked, split):
        assert not list(ta300.check_step(crashed(module, value((8, 4), device="cuda:0"))))


def test_an_input_that_is_where_a_part_of_the_model_is_meets_a_layer_that_was_left_behind() -> None:
    left = nn.Linear(2, 2)
    model = nn.Sequential(nn.Linear(4, 2, device="meta"), left)
    given, hidden = value((8, 4), device="meta"), value((8, 2), device="meta")
    calls = [call(model[0], given), call(left, hidden, raised=True)]
    assert not list(ta300.check_step(step(forward(model, [given], calls, complete=False))))


# -- TA301, TA302 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lowest", "highest", "std", "found"),
    [(0, 255, 60, 1), (0, 101, 21, 1), (0, 100, 30, 0), (-1, 255, 60, 0), (0, 256, 60, 0), (0, 255, 5, 0)],
)
def test_the_range_of_bytes(lowest: float, highest: float, std: float, found: int) -> None:
    module = nn.Conv2d(3, 4, 3)
    given = value((8, 3, 8, 8), minimum=lowest, maximum=highest, std=std)
    assert len(list(ta301.check_step(step(forward(module, [given], [call(module, given)]))))) == found


def test_a_flat_input_counts_audited_steps_in_a_row() -> None:
    module, history = nn.Linear(4, 2), History()

    def flat(lowest: float) -> int:
        given = value((8, 4), minimum=lowest, maximum=1.0)
        return len(
            list(ta302.check_step(step(forward(module, [given], [call(module, given)]), history=history)))
        )

    assert [flat(lowest) for lowest in (1.0, 1.0, 0.9, 1.0, 1.0, 1.0)] == [0, 0, 0, 0, 0, 1]


# -- TA304 ----------------------------------------------------------------------------------------------------


def normed(module: nn.Module, shape: tuple[int, ...], history: History) -> list[object]:
    given = value(shape)
    said = ta304.check_step(step(forward(module, [given], [call(module, given)]), history=history))
    return [one for one in said if isinstance(one, Suspicion)]


@pytest.mark.parametrize(("shape", "found"), [((7, 4), 1), ((8, 4), 0), ((1, 4, 2, 3), 1), ((1, 4, 2, 4), 0)])
def test_values_per_channel_count_not_the_batch(shape: tuple[int, ...], found: int) -> None:
    history = History()
    module = nn.BatchNorm1d(4) if len(shape) == 2 else nn.BatchNorm2d(4)
    assert not normed(module, shape, history)
    assert len(normed(module, shape, history)) == found


@pytest.mark.parametrize(("ranks", "found"), [(1, 1), (2, 0)])
def test_synchronised_statistics_count_all_ranks(
    ranks: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda group=None: ranks)
    history = History()
    normed(nn.SyncBatchNorm(4), (4, 4), history)
    assert len(normed(nn.SyncBatchNorm(4), (4, 4), history)) == found


# -- TA313 ----------------------------------------------------------------------------------------------------

OWN = ["a", "b", "c", "d"]


def loaded(**fields: Any) -> Loader:
    loader = Loader(
        LINE, loader=lambda: None, batches=20, trained=19, once=True, sampler="DistributedSampler"
    )
    for name, field in fields.items():
        setattr(loader, name, field)
    return loader


def run(
    loader: Loader, peers: dict[int, list[list[str]]] | None = None, *, data_parallel: bool = True
) -> Run:
    told = {rank: Told(batches=batches) for rank, batches in (peers or {}).items()}
    return Run(
        steps=20, machine=CPU, loaders=[loader], history=History(), peers=told, data_parallel=data_parallel
    )


@pytest.mark.parametrize(("repeats", "batches", "found"), [(3, 20, 1), (2, 20, 0), (3, 31, 0)])
def test_how_many_repeats_count(repeats: int, batches: int, found: int) -> None:
    assert len(list(ta313.check_run(run(loaded(repeats=repeats, batches=batches))))) == found


def test_ranks_with_the_same_batches_are_found() -> None:
    [found] = ta313.check_run(run(loaded(digests=OWN), {1: [[*OWN, "e"]]}))
    assert found.evidence == {"ranks": "0,1"}


@pytest.mark.parametrize(
    ("own", "other", "fields", "data_parallel"),
    [
        (OWN, ["a", "b", "c", "x"], {}, True),
        (OWN[:3], OWN[:3], {}, True),
        (["a"] * 4, ["a"] * 4, {}, True),
        (OWN, OWN, {"trained": 0}, True),
        (OWN, OWN, {}, False),
        (OWN, OWN, {"sampler": "RandomSampler"}, True),
    ],
    ids=["different", "too few", "one batch on purpose", "validation", "tensor parallel", "TA802"],
)
def test_ranks_that_may_be_alike(
    own: list[str], other: list[str], fields: dict[str, object], data_parallel: bool
) -> None:
    facts = run(loaded(digests=own, **fields), {1: [other]}, data_parallel=data_parallel)
    assert not list(ta313.check_run(facts))


def test_a_model_is_data_parallel_by_its_wrapper() -> None:
    class FSDPModule(nn.Module): ...

    assert Model(nn.Sequential(FSDPModule()), LINE, Names(), CPU).data_parallel
    assert not Model(nn.Linear(4, 2), LINE, Names(), CPU).data_parallel


def test_which_loaders_draw_every_sample_once() -> None:
    class Stream(IterableDataset[Tensor]):
        def __iter__(self) -> Iterator[Tensor]:
            yield torch.zeros(2)

    data = torch.zeros(8, 2)
    assert _draws_once(DataLoader(data, batch_size=4))
    assert _draws_once(DataLoader(data, batch_size=4, shuffle=True))
    assert _draws_once(DataLoader(Stream(), batch_size=4, num_workers=2))
    assert not _draws_once(DataLoader(Stream(), batch_size=4))
    assert not _draws_once(DataLoader(data))
    assert not _draws_once(DataLoader(data, batch_size=4, sampler=RandomSampler(data, replacement=True)))
    assert not _draws_once(DataLoader(data, batch_size=4, sampler=WeightedRandomSampler([1.0] * 8, 8)))
    assert not _draws_once(DataLoader(data, batch_sampler=[[0, 1], [0, 1]]))


def repeats(order: list[int], workers: int, size: int) -> int:
    """How many repeats are counted among batches of so many numbers each."""
    rows = [torch.randn(size, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    loader = Loader(LINE, loader=lambda: None, workers=workers, epochs=1)
    taken = _Pass(loader, Pass())
    for number in order:
        LoaderObserver._hash(None, taken, [rows[number]], [_bytes(rows[number])])
    return loader.repeats


def test_a_repeat_is_counted_for_another_worker_alone() -> None:
    assert repeats([0, 0, 1, 1, 2, 2], workers=2, size=40) == 3
    assert repeats([0, 1, 0, 1, 0, 1], workers=2, size=40) == 0
    assert repeats([0, 1, 0, 1, 0, 1], workers=0, size=40) == 4


def test_of_large_batches_the_first_repeat_only_makes_the_whole_ones_be_remembered() -> None:
    assert repeats([0, 0, 1, 1, 2, 2], workers=2, size=4000) == 2
    assert repeats([0, 1, 0, 1, 0, 1], workers=2, size=4000) == 0
    assert repeats([0, 1, 0, 1, 0, 1], workers=0, size=4000) == 2


# -- TA500, TA511 ---------------------------------------------------------------------------------------------


def optimized(optimizer: torch.optim.Optimizer, history: History) -> Optimizer:
    return Optimizer(optimizer, LINE, Names(), history.of(optimizer))


def test_an_unused_layer_is_told_before_the_end_of_a_long_run() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    tensors = list(module.parameters())
    history = History()
    optimizer = optimized(torch.optim.SGD(tensors, lr=0.1), history)
    gradients = Gradients(0, optimizer, LINE, tensors, [True, True, False, False])
    audited = step(forward(module, [], [call(module[0]), call(module)]), history=history)
    audited.gradients = [gradients]
    assert not list(ta500.check_step(audited))
    for _ in range(ta500.EARLY_STEPS):
        optimizer.history.add_gradients(0, tensors, gradients.present, gradients.norms)
    [found] = ta500.check_step(audited)
    assert found.message.startswith("layer `1` never runs")


def test_waiting_for_unused_layers_keeps_no_model_alive() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    history = History()
    tensors = list(module.parameters())
    optimizer = optimized(torch.optim.SGD(tensors, lr=0.1), history)
    audited = step(forward(module, [], [call(module)]), history=history)
    audited.gradients = [Gradients(0, optimizer, LINE, tensors, [False] * 4)]
    list(ta500.check_step(audited))
    alive = weakref.ref(module)
    del module, tensors, optimizer, audited
    gc.collect()
    assert alive() is None


def updated(history: History, *, gradient: float = 1.0, rate: float = 1e-4, **fields: Any) -> list[object]:
    tensor = fields.pop("tensor")
    assert isinstance(tensor, Tensor)
    optimizer = fields.pop("optimizer")
    assert isinstance(optimizer, Optimizer)
    update = Update(tensor, optimizer, True, True, rate, weight=1.0, change=0.0, gradient=gradient, **fields)
    facts = Step(0, LINE, CPU, updates=[update], history=history)
    return list(ta511.check_step(facts))


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, 1),
        ({"gradient": 0.0}, 0),
        ({"gradient": 1e-7}, 0),
        ({"gradient": float("inf")}, 0),
        ({"rate": 0.0}, 0),
        ({"rate": float("nan")}, 0),
        ({"rate": 0.4e-4}, 0),
        ({"skipped": True}, 0),
    ],
)
def test_when_a_half_precision_parameter_should_have_moved(fields: dict[str, object], found: int) -> None:
    tensor = torch.zeros(4, dtype=torch.bfloat16, requires_grad=True)
    sgd = torch.optim.SGD([tensor], lr=1e-4)
    sgd.param_groups[0]["initial_lr"] = 1e-4
    history = History()
    optimizer = optimized(sgd, history)
    counts = [len(updated(history, tensor=tensor, optimizer=optimizer, **fields)) for _ in range(ta511.STEPS)]
    assert counts == [0] * (ta511.STEPS - 1) + [found]


# -- TA212 ----------------------------------------------------------------------------------------------------


def small_step(*inputs: Value, backwards: int = 1) -> Step:
    model = nn.Linear(4, 1)
    optimizer = optimized(torch.optim.SGD(model.parameters(), lr=0.1), History())
    gradients = Gradients(0, optimizer, LINE, [], [], backwards=backwards)
    taken = step(*(forward(model, [given]) for given in inputs))
    taken.gradients = [gradients]
    return taken


@pytest.mark.parametrize("given", [value((2, 3, 8, 8)), value((4, 10)), value((1,), torch.int64)])
def test_few_samples_that_fill_the_memory_are_reported_at_the_step(
    given: Value, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Machine, "peak_memory", 0.9)
    [found] = ta212.check_step(small_step(given))
    assert found.place == LINE
    assert found.evidence["memory share"] == 0.9


@pytest.mark.parametrize("share", [0.5, None])
def test_few_samples_where_there_is_room_are_a_choice(
    share: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Machine, "peak_memory", share)
    assert list(ta212.check_step(small_step(value((2, 3, 8, 8))))) == []


@pytest.mark.parametrize(
    "taken",
    [
        small_step(value((5, 3, 8, 8))),
        small_step(value((1, 512), torch.int64)),
        small_step(value((1, 512, 64))),
        small_step(value((2, 8)), backwards=4),
        small_step(value((2, 8)), value((2, 8))),
        small_step(value(())),
        small_step(),
    ],
    ids=["five images", "tokens", "features", "accumulated", "two passes", "scalar", "none"],
)
def test_other_batches_are_nobodys_business(taken: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "peak_memory", 0.9)
    assert list(ta212.check_step(taken)) == []


def test_without_a_device_nothing_is_known_of_its_memory() -> None:
    assert CPU.peak_memory is None
