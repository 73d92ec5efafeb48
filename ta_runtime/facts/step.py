"""What was seen of one step of a run: forward passes, losses, gradients, and what the step wrote."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_lint.events.compared import ELEMENTWISE, Compared
from ta_lint.events.containers import PlainContainer
from ta_lint.events.copies import Copy
from ta_lint.events.half_updates import MOST, HalfUpdate
from ta_lint.events.products import Product
from ta_lint.events.residuals import Residual
from ta_lint.events.underflow import Underflow
from ta_runtime.facts.expression import Expression
from ta_runtime.facts.history import History
from ta_runtime.facts.loader import Batch
from ta_runtime.facts.model import Machine, Model, Optimizer
from ta_runtime.facts.peers import Wrapper
from ta_runtime.facts.plain_containers import plain_containers_of
from ta_runtime.facts.scores import Padding, Scores
from ta_runtime.facts.softmax import Softmax
from ta_runtime.facts.value import Value
from ta_runtime.naming import Layer, Parameter
from ta_runtime.probes.registers import Register

if TYPE_CHECKING:
    from ta_runtime.naming import Names
    from ta_runtime.probes.places import Place, Scope

WARM = 0.5
"""Of the learning rate that a scheduler began with: below it steps are meant to be small."""
_HALF = (torch.float16, torch.bfloat16)
IDLE = 16
"""Steps without a write after which an optimizer is looked at: one that collects gradients over more keeps them somewhere."""


@dataclass(slots=True)
class LayerCall:
    """One call of one module inside a forward pass, in order of completion.

    `inputs` and `outputs` are the tensors at the top level of its arguments and results, keyword arguments included; a
    tensor that goes from one call to the next is the same `Value` in both, and so is an input of the forward pass that
    a module gets as it is. `dead` is, for an activation that outputs exact zeros (ReLU and its kin), the share of its
    units that are zero for the whole batch; a unit is a channel (dimension 1) of an output of 4 or more dimensions,
    else an entry of the last. It is None where later code wrote to a small output before it was looked at, at the end
    of the forward pass. `saturated`, for sigmoid and tanh, is the share of outputs within 0.01 of a limit. Only the
    outputs of modules without children have a `norm`, and those of rectifiers have none.
    """

    module: nn.Module
    names: "Names"
    model: nn.Module
    training: bool
    inputs: list[Value]
    outputs: list[Value] = field(default_factory=list)
    dead: float | None = None
    saturated: float | None = None
    units: int | None = None
    rows: int | None = None
    """How many times each unit was seen: the elements of the output over its units."""
    raised: bool = False

    @property
    def layer(self) -> Layer:
        return self.names.layer_of(self.model, self.module)

    @property
    def multiplications(self) -> int:
        """Of a linear, convolutional, recurrent or attention layer in one forward pass; 0 for what is none of these."""
        if not self.inputs or not self.outputs or not self.inputs[0].shape or not self.outputs[0].shape:
            return 0
        given, result, module = self.inputs[0], self.outputs[0], self.module
        if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
            weights = sum(weight.numel() for weight in module.parameters() if weight.dim() > 1)
            return weights * (result.numel // max(result.shape[-1], 1))
        weight = module._parameters.get("weight")
        if weight is None or module._modules or not given.dtype.is_floating_point:
            return 0
        if isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
            return weight.numel() // weight.shape[0] * given.numel
        if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
            return weight.numel() // weight.shape[0] * result.numel
        # also linear layers by another name, such as `Conv1D` of transformers
        linear = weight.dim() == 2 and weight.numel() == given.shape[-1] * result.shape[-1]
        return given.shape[-1] * result.numel if linear else 0


@dataclass(slots=True)
class Forward:
    """An outermost call of a model by the training code. `place` is the line that called it.

    `calls` are those of its modules, itself included and last; `complete` is False if it raised. Forwards in
    evaluation mode or without gradients hold no calls and no numbers, but in a program without an optimizer. `autocast` is the dtype of an active autocast of
    the model's device type. Of a call on trial, which has no loss, `outputs` have their range.
    """

    model: Model
    place: "Place"
    training: bool
    grad_enabled: bool
    autocast: torch.dtype | None
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    calls: list[LayerCall] = field(default_factory=list)
    lookups: list[LayerCall] = field(default_factory=list)
    """Calls of embeddings as they began, with the range of the ids in `inputs[0]`; also the one that raised."""
    complete: bool = False
    spoiled: bool = False
    """Whether no value of its outputs is finite; of a program without an optimizer."""


@dataclass(slots=True)
class Loss:
    """A call of a loss function of `torch.nn.functional`, also from inside its module (`nn.CrossEntropyLoss`).

    `place` is the line of the training code that led to it, `options` its arguments besides input and target, with
    defaults, `value` its result if that is a scalar.
    """

    function: str
    place: "Place"
    input: Value
    target: Value
    options: Mapping[str, Any]
    value: float | None = None
    training: bool = True
    scores: Scores | None = None
    padding: Padding | None = None
    labels: float | None = None
    """Of a loss by classes: how many targets it does not ignore."""
    batch: int = 0
    """How many backward passes ran in the step before: the losses of one micro-batch have the same number."""


@dataclass(slots=True)
class Gradients:
    """The gradients that one optimizer step uses: accumulated, reduced, unscaled and clipped, as the step sees them.

    `tensors` are the parameters that require gradients, and of the others nothing is said. `norms` are the L2 norms of
    their gradients in that order, None where there is none (or it is sparse and the step is not audited).
    `before_clipping` is the norm that `clip_grad_norm_` returned in this step. `loss` is the value that `backward` was
    called on last, without the scale of a GradScaler. Under FSDP2 norms are of this rank's shard: `sharded`. `skipped`
    says that a GradScaler found an overflow and the step changes nothing.
    """

    step: int
    optimizer: Optimizer
    place: "Place"
    """The line that called `step()`."""
    tensors: list[Tensor]
    present: list[bool]
    norms: Sequence[float | None] = ()
    total: float | None = None
    """The global L2 norm at the step; None if there are no gradients."""
    before_clipping: float | None = None
    loss: float | None = None
    loss_place: "Place | None" = None
    backwards: int = 0
    """How many backward passes ran since the last step, 0 if that was not seen."""
    sharded: bool = False
    skipped: bool = False
    learning_rate: float | None = None
    """Of the first group; None where a tensor on a device holds it."""

    def parameter(self, index: int) -> Parameter:
        return self.optimizer.names.parameter(self.tensors[index], self.optimizer)


@dataclass(slots=True)
class Update:
    """What one audited optimizer step did to one parameter.

    `weight` (before the step) and `change` are L2 norms over the same elements: all, or an even sample of about 4096
    where `exact` is False. `changed` is the share of these elements that are not as they were; it is counted for half
    precision, and for what a norm of zero says did not change in an earlier audit.
    """

    tensor: Tensor
    optimizer: Optimizer
    exact: bool
    had_gradient: bool
    learning_rate: float
    weight: float | None = None
    change: float | None = None
    changed: float | None = None
    gradient: float | None = None
    """The L2 norm of its gradient at the step."""
    skipped: bool = False

    @property
    def ratio(self) -> float | None:
        """`change` over `weight`, for a weight of two or more dimensions that a gradient other than zero moved; else None."""
        moved = self.had_gradient and self.gradient != 0.0 and not self.skipped and self.learning_rate > 0
        if self.tensor.dim() < 2 or not moved:
            return None
        return self.change / self.weight if self.weight and self.change is not None else None

    @property
    def parameter(self) -> Parameter:
        return self.optimizer.names.parameter(self.tensor, self.optimizer)


@dataclass(slots=True)
class State:
    """A parameter, or running statistic of a batch norm, of a model after an audited step, and its L2 norm."""

    tensor: Tensor
    optimizer: Optimizer
    norm: float | None = None

    @property
    def parameter(self) -> Parameter:
        return self.optimizer.names.parameter(self.tensor, self.optimizer)


@dataclass(slots=True)
class Filters:
    """The filters of a convolution after an audited step: the L2 norm of each, empty where they were not measured.

    Measured at the first audited step, the second, the fourth, and so on.
    """

    name: str
    weight: Tensor
    model: Model
    norms: Sequence[float] = ()

    @property
    def parameter(self) -> Parameter:
        return self.model.names.parameter_of(self.model.module, self.name, self.weight)


@dataclass(slots=True)
class Step:
    """One audited step: everything from the end of the step before to the end of `optimizer.step()`.

    The first four, of the others each fourth, and those that look closer at something are `thorough`: only they have
    `updates`, `states` and `filters`, and the `dead` and `saturated` of calls, which hardly change from step to step.
    """

    index: int
    place: "Place"
    machine: Machine
    forwards: list[Forward] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    gradients: list[Gradients] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    filters: list[Filters] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    expressions: list[Expression] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)
    residuals: list[Residual] = field(default_factory=list)
    softmaxes: list[Softmax] = field(default_factory=list)
    underflows: list[Underflow] = field(default_factory=list)
    wrappers: list[Wrapper] = field(default_factory=list)
    births: Register[int] = field(default_factory=Register)
    """Modules that were built while a model ran in an audited step, with its number."""
    idle: dict[int, int] = field(default_factory=dict)
    """Optimizers, by id, that have never written to a parameter and keep nothing, though each step had new gradients, with the steps."""
    complete: bool = True
    """False if the run ended, or raised, before the step did."""
    thorough: bool = True
    structural: bool = True
    """Whether it is one of the first four audits, of those after them the eighth, the sixteenth and so on, or a closer look:
    only then is it looked at how the model is put together."""
    history: History = field(default_factory=History)
    inferences: list[Forward] = field(default_factory=list)
    """Those of `forwards` that record no gradients, with calls and numbers, for a program that turns out to have no optimizer."""
    scopes: "set[Scope]" = field(default_factory=set)
    """The user's functions and classes that took part in it."""
    infers: bool = False
    """Whether it has none: then this is all of it, and `forwards` are the first and some of the later."""

    @property
    def half_updates(self) -> list[HalfUpdate]:
        """What it did to weights in half precision."""
        return _half_updates(self.updates, self.history)

    @property
    def plain_containers(self) -> list[PlainContainer]:
        """The plain containers on modules that run in training."""
        trained = [one for gradients in self.gradients for one in gradients.optimizer.parameters]
        return [
            found
            for forward in self.training_forwards
            for found in plain_containers_of(
                [call.module for call in forward.calls],
                forward.model.module,
                forward.model.names.models,
                trained,
            )
        ]

    @property
    def compared(self) -> list[Compared]:
        """What the losses of training compare number by number."""
        return [
            Compared(loss.place, loss.function, tuple(loss.input.shape), tuple(loss.target.shape))
            for loss in self.losses
            if loss.training and loss.function in ELEMENTWISE
        ]

    @property
    def is_broken(self) -> bool:
        """Whether a loss or gradient of this step is infinite or NaN."""
        numbers = [number for gradients in self.gradients for number in (gradients.total, gradients.loss)]
        return any(number is not None and not math.isfinite(number) for number in numbers)

    @property
    def training_forwards(self) -> list[Forward]:
        return [forward for forward in self.forwards if forward.training and forward.grad_enabled]

    @property
    def telling_forwards(self) -> list[Forward]:
        """Those that train; of a program without an optimizer all."""
        return self.forwards if self.infers else self.training_forwards


def _half_updates(updates: Iterable[Update], history: History) -> list[HalfUpdate]:
    """The share of elements of weights in half precision that stay, for each optimizer."""
    by_optimizer: dict[int, list[Update]] = {}
    moved = [update for update in updates if _counts(update)]
    tables = _tables(moved[0].optimizer.names) if moved else frozenset()
    for update in moved:
        if id(update.tensor) not in tables:
            by_optimizer.setdefault(id(update.optimizer.optimizer), []).append(update)
    found = []
    for key, own in by_optimizer.items():
        stayed = _stayed(own)
        looks = history.streak(("half precision", key), stayed >= MOST)
        found.append(HalfUpdate(own[0].optimizer.place, own[0].learning_rate, stayed, looks))
    return found


def _counts(update: Update) -> bool:
    """Whether a step was to move all of a weight in half precision, by an optimizer of torch, which rounds to nearest."""
    return (
        update.changed is not None
        and update.tensor.dtype in _HALF
        and update.tensor.dim() > 1
        and bool(update.gradient)
        and not update.skipped
        and update.learning_rate > 0
        and type(update.optimizer.optimizer).__module__.startswith("torch.optim.")
        and update.learning_rate >= WARM * update.optimizer.initial_rate(update.tensor)
    )


def _tables(names: "Names") -> frozenset[int]:
    """The weights of embeddings, by id: a step moves the rows of the words in its batch alone."""
    return frozenset(
        key
        for key, holders in names.holders().items()
        if any(isinstance(module, nn.Embedding) for _, module in holders)
    )


def _stayed(updates: list[Update]) -> float:
    """The share of elements that are as they were."""
    total = sum(update.tensor.numel() for update in updates)
    changed = sum((update.changed or 0.0) * update.tensor.numel() for update in updates)
    return 1 - changed / total
