"""The checks of TA100 to TA109 on plain facts: thresholds, and what no small script reaches."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from ta_runtime import checks
from ta_runtime.facts import (
    Forward,
    Gradients,
    LayerCall,
    Loss,
    Machine,
    Model,
    Optimizer,
    Step,
    Suspicion,
    Update,
    Value,
)
from ta_runtime.facts.history import History
from ta_runtime.incidents import Incidents
from ta_runtime.naming import Names
from ta_runtime.probes.places import Place

STEP = Place("train.py", 10)
BACKWARD = Place("train.py", 9)
MACHINE = Machine(None)

ta100, ta101, ta102, ta103, ta104, ta105, ta106, ta107, ta108, ta109 = (
    checks.module_of(f"TA{number}") for number in range(100, 110)
)


class Watched:
    """A model of some layers and its optimizer, with the facts made for them by hand."""

    def __init__(self, layers: int = 3, kind: type[Any] = torch.optim.SGD) -> None:
        self.model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(layers)])
        self.names = Names()
        self.names.add(self.model)
        self.history = History()
        optimizer = kind(self.model.parameters(), lr=0.1)
        self.optimizer = Optimizer(optimizer, Place("train.py", 3), self.names, self.history.of(optimizer))
        self.tensors: list[torch.Tensor] = list(self.model.parameters())

    def gradients(self, norms: Sequence[float | None], step: int = 0, **other: Any) -> Gradients:
        present = [norm is not None for norm in norms]
        finite = [norm for norm in norms if norm is not None]
        facts = Gradients(step, self.optimizer, STEP, self.tensors, present, norms)
        facts.total = math.hypot(*finite) if finite else None
        facts.loss_place = BACKWARD
        for name, value in other.items():
            setattr(facts, name, value)
        return facts

    def past(self, gradients: Gradients) -> None:
        """What a session does after the checks of a step."""
        history = gradients.optimizer.history
        history.add_norm(gradients.before_clipping or gradients.total)
        history.add_loss(gradients.step, gradients.loss)
        history.add_gradients(gradients.step, gradients.tensors, gradients.present, gradients.norms)

    def forward(self, *calls: LayerCall, inputs: Sequence[Value] = ()) -> Forward:
        model = Model(self.model, Place("train.py", 1), self.names, MACHINE)
        return Forward(
            model, Place("train.py", 8), True, True, None, list(inputs), calls=list(calls), complete=True
        )

    def call(self, module: nn.Module, norm: float | None = 1.0, **other: Any) -> LayerCall:
        output = value(norm=norm)
        return LayerCall(module, self.names, self.model, True, [value(norm=1.0)], [output], **other)


def value(name: str = "x", shape: tuple[int, ...] = (64, 16), **other: float | None) -> Value:
    return Value(name, torch.Size(shape), torch.float32, torch.device("cpu"), **other)  # type: ignore[arg-type]


def step(*forwards: Forward, index: int = 0, **other: Any) -> Step:
    return Step(index, STEP, MACHINE, list(forwards), **other)


@pytest.fixture
def watched() -> Watched:
    return Watched()


# -- TA100, TA101: one chain ------------------------------------------------------------------------------------


def test_of_gradients_that_are_not_finite_the_last_of_the_model_is_named_and_all_are_counted(
    watched: Watched,
) -> None:
    [found] = ta100.check_gradients(watched.gradients([math.nan, 1.0, math.inf, math.nan, 1.0, 1.0]))
    assert (found.subject, found.order) == ("1.bias", 3)
    assert found.message == "the gradient of `1.bias` is NaN: skip the step, or lower the learning rate"
    assert found.evidence["gradients"] == 3


def test_an_infinite_norm_is_said_to_overflow_as_its_elements_may_be_finite(watched: Watched) -> None:
    [found] = ta100.check_gradients(watched.gradients([1.0, math.inf, 1.0, 1.0, 1.0, 1.0]))
    assert found.message == "the gradient of `0.bias` overflows: skip the step, or lower the learning rate"


def test_a_loss_that_is_not_finite_comes_before_the_gradients(watched: Watched) -> None:
    found = list(ta100.check_gradients(watched.gradients([math.nan] * 6, loss=math.inf)))
    assert next((suspicion.place, suspicion.order) for suspicion in found) == (BACKWARD, 2)


def test_a_loss_that_is_not_finite_and_reaches_no_gradient_is_no_finding(watched: Watched) -> None:
    assert not list(ta100.check_gradients(watched.gradients([1.0] * 6, loss=math.nan)))


def test_a_step_that_a_fused_optimizer_skips_is_no_finding(watched: Watched) -> None:
    assert not list(ta100.check_gradients(watched.gradients([math.inf] * 6, skipped=True)))


def test_norms_that_are_finite_with_a_sum_that_is_not_are_no_finding(watched: Watched) -> None:
    assert not list(
        ta100.check_gradients(watched.gradients([1e308, 1e308, 1.0, 1.0, 1.0, 1.0], total=math.inf))
    )


def test_one_nan_through_a_run_is_one_incident_with_the_first_cause(watched: Watched) -> None:
    incidents = Incidents()
    layers = list(watched.model)
    for index in range(20):
        gradients = watched.gradients([math.nan] * 6, step=index, loss=math.nan)
        calls = [
            watched.call(layers[0]),
            watched.call(layers[1], math.nan),
            watched.call(layers[2], math.nan),
        ]
        facts = step(watched.forward(*calls), index=index, gradients=[gradients])
        said: list[tuple[str, Suspicion]] = [("TA100", found) for found in ta100.check_gradients(gradients)]
        said += [("TA101", found) for found in ta101.check_step(facts)]
        incidents.add(said, index)
    [incident] = incidents
    assert (incident.rule, incident.suspicion.subject, incident.times) == ("TA101", "1", 20)


@pytest.mark.parametrize("maximum", [math.nan, math.inf])
def test_an_input_that_is_not_finite_is_named_before_any_layer(watched: Watched, maximum: float) -> None:
    bad = value("images", minimum=0.0, maximum=maximum)
    forward = watched.forward(watched.call(watched.model[0], math.nan), inputs=[bad])
    [found] = ta101.check_step(step(forward, gradients=[watched.gradients([math.nan] * 6)]))
    assert (found.order, found.place) == (0, forward.place)
    assert "`images`" in found.message


def test_an_input_of_minus_infinity_is_a_mask(watched: Watched) -> None:
    mask = value("mask", minimum=-math.inf, maximum=0.0)
    forward = watched.forward(watched.call(watched.model[0], math.nan), inputs=[mask])
    [found] = ta101.check_step(step(forward, gradients=[watched.gradients([math.nan] * 6)]))
    assert found.subject == "0"


def test_an_output_that_is_not_finite_and_does_no_harm_is_no_finding(watched: Watched) -> None:
    forward = watched.forward(watched.call(watched.model[0], math.inf))
    assert not list(ta101.check_step(step(forward, gradients=[watched.gradients([1.0] * 6)])))


def test_the_message_says_whether_the_inputs_are_known_to_be_finite(watched: Watched) -> None:
    call = watched.call(watched.model[0], math.nan)
    harm = [watched.gradients([math.nan] * 6)]
    [known] = ta101.check_step(step(watched.forward(call), gradients=harm))
    call.inputs[0].norm = None
    [unknown] = ta101.check_step(step(watched.forward(call), gradients=harm))
    assert " from finite inputs: " in known.message
    assert " is the first that is not finite: " in unknown.message


# -- TA102 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("past", "norm", "found"),
    [
        pytest.param([1.0] * 60, 31.0, True, id="a spike"),
        pytest.param([1.0] * 60, 29.0, False, id="under the factor"),
        pytest.param([1.0] * 40, 1e6, False, id="too early"),
        pytest.param([100.0] * 5 + [1.0] * 60, 90.0, False, id="not above what the run has seen"),
        pytest.param([0.01, 100.0] * 30, 3000.0, False, id="a noisy run"),
        pytest.param([1.0] * 60, math.inf, False, id="TA100's"),
    ],
)
def test_a_spike_is_one_by_the_measure_of_the_run(
    watched: Watched, past: list[float], norm: float, found: bool
) -> None:
    for index, usual in enumerate(past):
        watched.past(watched.gradients([usual, None, None, None, None, None], index))
    assert bool(list(ta102.check_gradients(watched.gradients([norm] + [None] * 5, len(past))))) == found


# -- TA103, TA104 -----------------------------------------------------------------------------------------------


def zero_for(
    watched: Watched, steps: int, norms: Sequence[float | None], then: Sequence[float | None]
) -> list[Suspicion]:
    for index in range(steps):
        watched.past(watched.gradients(norms, index))
    called = watched.forward(*[watched.call(layer) for layer in watched.model])
    return list(ta103.check_step(step(called, index=steps, gradients=[watched.gradients(then, steps)])))


@pytest.mark.parametrize(
    ("steps", "norms", "found"),
    [
        pytest.param(20, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0], ["1.bias"], id="the nearest to the loss"),
        pytest.param(19, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0], [], id="too early"),
        pytest.param(50, [0.0] * 6, [], id="every gradient: the loss is satisfied"),
        pytest.param(50, [0.0, 0.0, 1e-13, 1e-13, 1.0, 1.0], [], id="squares below float32"),
        pytest.param(50, [1.0, 1.0, None, None, 1.0, 1.0], [], id="no gradient"),
    ],
)
def test_a_gradient_that_has_always_been_zero(
    watched: Watched, steps: int, norms: list[float | None], found: list[str]
) -> None:
    assert [suspicion.subject for suspicion in zero_for(watched, steps, norms, norms)] == found


def test_a_gradient_that_was_something_else_once_is_not_watched_again(watched: Watched) -> None:
    watched.past(watched.gradients([1.0] * 6, 0))
    assert not zero_for(watched, 60, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0, 1.0, 1.0])


def test_of_a_sharded_parameter_a_rank_may_hold_nothing(watched: Watched) -> None:
    norms = [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    for index in range(60):
        watched.past(watched.gradients(norms, index))
    called = watched.forward(*[watched.call(layer) for layer in watched.model])
    assert not list(ta103.check_step(step(called, gradients=[watched.gradients(norms, 60, sharded=True)])))


def test_an_optimizer_of_nothing_but_empty_shards_has_no_gradients(watched: Watched) -> None:
    watched.tensors = [nn.Parameter(torch.empty(0)) for _ in range(6)]
    for index in range(5):
        watched.past(watched.gradients([None] * 6, index))
    assert not list(ta104.check_gradients(watched.gradients([None] * 6, 5)))


@pytest.mark.parametrize(("before", "found"), [(0, False), (1, False), (2, True), (9, True)])
def test_no_gradient_is_a_finding_at_the_third_step(watched: Watched, before: int, found: bool) -> None:
    for index in range(before):
        watched.past(watched.gradients([None] * 6, index))
    assert bool(list(ta104.check_gradients(watched.gradients([None] * 6, before)))) == found


def test_an_optimizer_that_had_a_gradient_may_go_without(watched: Watched) -> None:
    watched.past(watched.gradients([1.0] * 6))
    for index in range(5):
        watched.past(watched.gradients([None] * 6, index + 1))
    assert not list(ta104.check_gradients(watched.gradients([None] * 6, 6)))


# -- TA105, TA109 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dead", "units", "rows", "found"),
    [(0.9, 64, 64, True), (0.89, 64, 64, False), (1.0, 7, 64, False), (1.0, 64, 63, False)],
)
def test_a_layer_is_dead_by_units_each_seen_often_enough(
    watched: Watched, dead: float, units: int, rows: int, found: bool
) -> None:
    call = watched.call(watched.model[0], None, dead=dead, units=units, rows=rows)
    assert bool(list(ta105.check_step(step(watched.forward(call))))) == found


def test_a_saturated_activation_is_one_only_with_a_layer_after_it(watched: Watched) -> None:
    saturated = watched.call(watched.model[0], saturated=0.95)
    later = watched.call(watched.model[1])
    assert list(ta109.check_step(step(watched.forward(saturated, later))))
    assert not list(ta109.check_step(step(watched.forward(later, saturated))))
    saturated.saturated = 0.94
    assert not list(ta109.check_step(step(watched.forward(saturated, later))))


# -- TA106 ------------------------------------------------------------------------------------------------------


def vanishing(norms: list[float], samples: int = 5) -> bool:
    watched = Watched(len(norms))
    every = [norm for weight in norms for norm in (weight, 1.0)]
    for index in range(0, 10 * (samples - 1), 10):
        watched.past(watched.gradients(every, index))
    return bool(list(ta106.check_gradients(watched.gradients(every, 10 * (samples - 1)))))


def test_a_gradient_that_falls_from_quarter_to_quarter_vanishes() -> None:
    falling = [10.0 ** (index - 8) for index in range(8)]
    assert vanishing(falling)
    assert not vanishing(falling, samples=3)
    assert not vanishing(falling[1:])
    assert not vanishing([10.0 ** (0.7 * index) for index in range(8)])


def test_a_branch_with_small_gradients_is_no_chain() -> None:
    assert not vanishing([1e-9] * 4 + [1.0] * 8)


# -- TA107 ------------------------------------------------------------------------------------------------------


def updates(watched: Watched, ratio: float, weight: float = 1.0, **other: Any) -> list[Update]:
    made = []
    for tensor in watched.tensors:
        update = Update(tensor, watched.optimizer, True, True, 0.1, weight, ratio * weight)
        for name, value in other.items():
            setattr(update, name, value)
        made.append(update)
    return made


@pytest.mark.parametrize(
    ("ratio", "other", "found"),
    [
        pytest.param(1.1, {}, True, id="large"),
        pytest.param(0.9, {}, False, id="not so large"),
        pytest.param(9.0, {"weight": 0.01}, False, id="weights that begin near zero"),
        pytest.param(9.0, {"skipped": True}, False, id="skipped by a scaler"),
        pytest.param(9.0, {"had_gradient": False}, False, id="no gradient"),
        pytest.param(9.0, {"learning_rate": math.nan}, False, id="a rate that is not known"),
    ],
)
def test_an_update_is_large_beside_the_weights(
    watched: Watched, ratio: float, other: dict[str, Any], found: bool
) -> None:
    assert bool(list(ta107.check_step(step(updates=updates(watched, ratio, **other))))) == found


def test_only_weights_count_and_a_single_one_is_a_linear_model() -> None:
    single = Watched(1)
    assert not list(ta107.check_step(step(updates=updates(single, 9.0))))


def small(watched: Watched, ratios: Sequence[float], index: int) -> bool:
    for ratio in ratios:
        watched.history.add_ratios((each.optimizer.history, each.ratio) for each in updates(watched, ratio))
    facts = step(index=index, updates=updates(watched, 1e-9), gradients=[watched.gradients([1.0] * 6)])
    return bool(list(ta107.check_step(facts)))


def test_an_update_is_small_if_none_was_ever_larger() -> None:
    assert small(Watched(), [1e-9] * 3, 25)
    assert not small(Watched(), [1e-9] * 2, 100)
    assert not small(Watched(), [1e-9] * 3, 24)
    assert not small(Watched(), [1e-3, 1e-9, 1e-9, 1e-9], 1000)


def test_a_rate_that_a_scheduler_has_in_hand_may_warm_up_for_longer() -> None:
    scheduled = Watched()
    torch.optim.lr_scheduler.LinearLR(scheduled.optimizer.optimizer)
    assert not small(scheduled, [1e-9] * 3, 99)
    assert small(scheduled, [1e-9] * 3, 100)


@pytest.mark.parametrize(
    ("rates", "found"),
    [
        pytest.param([1e-9, 2e-9, 1.9e-9], True, id="it falls: the warm-up is over"),
        pytest.param([1e-9, 1.9e-9, 2e-9], False, id="it rises"),
        pytest.param([2e-9, 2e-9, 2e-9], False, id="it may warm up by epochs"),
        pytest.param([1e-3, 1e-9, 1e-9], False, id="it was far higher, perhaps between two looks"),
    ],
)
def test_a_scheduled_rate_that_falls_has_warmed_up(rates: Sequence[float], found: bool) -> None:
    scheduled = Watched()
    torch.optim.lr_scheduler.LinearLR(scheduled.optimizer.optimizer)
    for rate in rates:
        scheduled.optimizer.history.add_rate(rate)
    assert small(scheduled, [1e-9] * 3, 25) == found


def test_what_stands_still_is_looked_at_once_more() -> None:
    history = Watched().optimizer.history
    for _ in range(3):
        history.ratios.add(1e-9)
    wanted = [step for step in range(120) if history.wants_update(step, scheduled=False)]
    assert wanted == [25]


# -- TA108 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("past", "loss", "found"),
    [
        pytest.param([0.7] * 20, 0.7, True, id="constant"),
        pytest.param([0.7] * 19, 0.7, False, id="too early"),
        pytest.param([0.8] + [0.7] * 50, 0.7, False, id="it was higher once"),
        pytest.param([0.0] * 50, 0.0, False, id="a margin that is met"),
    ],
)
def test_a_loss_is_constant_from_the_first_step(
    watched: Watched, past: list[float], loss: float, found: bool
) -> None:
    for index, earlier in enumerate(past):
        watched.past(watched.gradients([1.0] * 6, index, loss=earlier))
    assert bool(list(ta108.check_gradients(watched.gradients([1.0] * 6, len(past), loss=loss)))) == found


def cross_entropy(loss: float, classes: int = 10, **options: Any) -> Loss:
    given = {"weight": None, "ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0} | options
    target = Value("target", torch.Size((64,)), torch.int64, torch.device("cpu"))
    return Loss("cross_entropy", BACKWARD, value("input", (64, classes)), target, given, loss)


@pytest.mark.parametrize(
    ("loss", "classes", "options", "steps", "found"),
    [
        pytest.param(math.log(10), 10, {}, 1000, True, id="guessing"),
        pytest.param(math.log(10), 10, {}, 999, False, id="too early"),
        pytest.param(0.98 * math.log(10), 10, {}, 1000, False, id="it has learnt something"),
        pytest.param(math.log(2), 2, {}, 1000, False, id="two classes"),
        pytest.param(math.log(10), 10, {"label_smoothing": 0.1}, 1000, False, id="smoothed"),
        pytest.param(math.log(10), 10, {"reduction": "sum"}, 1000, False, id="a sum"),
    ],
)
def test_a_classifier_that_guesses(
    watched: Watched, loss: float, classes: int, options: dict[str, Any], steps: int, found: bool
) -> None:
    for index in range(steps):
        watched.past(watched.gradients([1.0] * 6, index, loss=loss + index % 2 * 1e-3))
    facts = step(
        index=steps,
        gradients=[watched.gradients([1.0] * 6, steps, loss=loss)],
        losses=[cross_entropy(loss, classes, **options)],
    )
    assert bool(list(ta108.check_step(facts))) == found


def test_a_classifier_that_guesses_shows_in_the_losses_of_each_fiftieth_step(watched: Watched) -> None:
    for index in range(0, 1000, 50):
        watched.past(watched.gradients([1.0] * 6, index, loss=math.log(10) + index * 1e-6))
    history = watched.optimizer.history
    assert not history.wants_loss(950)
    watched.past(watched.gradients([1.0] * 6, 1000, loss=math.log(10)))
    assert history.wants_loss(1000)
    assert not history.wants_loss(1050)  # it was asked for
    facts = step(
        index=1001,
        gradients=[watched.gradients([1.0] * 6, 1001, loss=math.log(10))],
        losses=[cross_entropy(math.log(10))],
    )
    assert list(ta108.check_step(facts))


def test_a_loss_that_is_only_a_part_of_what_was_stepped_on_is_not_judged(watched: Watched) -> None:
    for index in range(1000):
        watched.past(watched.gradients([1.0] * 6, index, loss=3.0))
    facts = step(
        gradients=[watched.gradients([1.0] * 6, 1000, loss=3.0)], losses=[cross_entropy(math.log(10))]
    )
    assert not list(ta108.check_step(facts))
