"""The order of a preflight: the first step is noted as the script makes it, and before it is taken all is looked at.

Batches are not drawn from the script's own loaders, as a data set may keep what cannot be put back: the first training
batch is the one that the script took, and further ones are handed out in a forked copy of the process (`forking`).
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TextIO

import torch
from torch import Tensor

from ta_lint.core.errors import oneline
from ta_lint.core.terminal import wants_color
from ta_runtime import ranks
from ta_runtime.audit.audit import Audit
from ta_runtime.facts import FirstLoss, Flight, Mixing, OneTarget, Unmoved
from ta_runtime.facts.history import History
from ta_runtime.faults import Shield, keep
from ta_runtime.measure.tree import tensors
from ta_runtime.preflight import peeking, probing, reading, text, words
from ta_runtime.preflight.briefing import Aim, Briefing, Entrance
from ta_runtime.preflight.figures import figures
from ta_runtime.preflight.forking import NotForked, apart
from ta_runtime.preflight.probing import Training
from ta_runtime.preflight.replay import NoReplay, Replay, ReplayedLoss
from ta_runtime.preflight.watching import FirstStep, KnownLoader, LossCall
from ta_runtime.probes import construction
from ta_runtime.probes.work import own_work

IN_A_ROW = 3
"""How often the first step is judged, as if all were like it: checks that pass over one odd batch want no more."""
_INPUTS = 8
"""Tensors of a call that are shown."""
_BY_CLASS = ("cross_entropy", "nll_loss")
_ENOUGH = 64
"""Targets that are not all of one class by chance."""


class PreflightOver(SystemExit):
    """Ends the script where its first step would be."""


class Preflight:
    """Looks before the first step of the run of an audit; `stops` the script there.

    `told` is called with what there is to show, before training goes on. `progress` is told what is done now.
    """

    def __init__(
        self,
        audit: Audit,
        told: Callable[[Briefing], object],
        *,
        stops: bool = False,
        progress: Callable[[str], object] = lambda text: None,
    ) -> None:
        self._audit = audit
        self._told, self._stops, self._progress = told, stops, progress
        self.briefing = Briefing(audit.script)
        self.done = False
        """Whether the first step was reached."""
        self._called: set[int] = set()
        """The modules, by id, that something passed through in the first step."""
        self._first = FirstStep(audit.session.barrier, self._reached)

    def attach(self) -> None:
        """Wait for the first step, of a session that has started."""
        self._audit.session.audit_now()
        self._first.attach()
        self._audit.ends_with(self.detach)
        self._progress("waiting for the first step")

    def detach(self) -> None:
        self._first.detach()
        self._progress("")

    def finish(self) -> None:
        """The script has ended without a step: show what there is."""
        if not self.done:
            self._look(None)

    def _reached(self, optimizer: torch.optim.Optimizer) -> None:
        if self.done or not self._audit.mine:
            return
        self._look(optimizer)
        if self._stops:
            raise PreflightOver(0)

    @own_work
    def _look(self, optimizer: torch.optim.Optimizer | None) -> None:
        self.done = optimizer is not None
        self.detach()
        began = time.perf_counter()
        briefing = self.briefing
        briefing.until_first_step = began - self._first.began
        if ranks.rank() == 0:
            self._attempt("the first step", self._judge)
            with self._audit.looking_away():
                self._attempt("what enters the model", self._show)
                self._attempt("what enters the model as text", self._read)
                self._attempt("the loaders", self._peek)
                if optimizer is not None:
                    self._attempt("the model on copies", partial(self._try, optimizer))
        self._progress("")
        briefing.seconds = time.perf_counter() - began
        self._first.forget()
        if ranks.rank() == 0:
            self._told(briefing)

    def _attempt(self, what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - the script goes on
            keep(error)
            self.briefing.not_tried.append(f"{what}: it raised `{type(error).__name__}`: {oneline(error)}")

    # -- the checks of the audit ------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Ask the checks about the step as far as it has come, and those of its data as if all batches were like this one."""
        self._progress("judging the first step")
        session = self._audit.session
        step = session.window.step
        session.flush()
        if step is None:
            return
        self._called = {
            id(call.module)
            for forward in step.training_forwards
            for call in forward.calls
            if all(value.numel for value in call.outputs)
        }
        alone = replace(step, gradients=[], updates=[], history=History(), complete=False)
        for _ in range(IN_A_ROW):
            session.ask("step", alone)
        session.audit_next()

    # -- what there is to show --------------------------------------------------------------------------------

    def _show(self) -> None:
        self._progress("looking at the first batch")
        briefing = self.briefing
        for call in self._first.calls:
            entrance = Entrance(type(call.module).__name__, call.place.path, call.place.line)
            given = [*tensors(call.args), *tensors(call.kwargs)]
            entrance.inputs = [figures(name, tensor) for name, tensor in given[:_INPUTS]]
            briefing.entrances.append(entrance)
        briefing.aims = [_aim(loss) for loss in self._first.losses]
        held = construction.held()
        briefing.parameters = sum(tensor.numel() for tensor in held.values() if tensor.requires_grad)

    def _read(self) -> None:
        """Read the token ids of each line that calls a model, of its first call."""
        told, read = self.briefing, set()
        for call, entrance in zip(self._first.calls, told.entrances, strict=True):
            if call.place in read:
                continue
            read.add(call.place)
            try:
                entrance.readings = reading.read(call, self._first.losses, self._audit.session.tokenizers)
            except reading.SeveralReaders:
                told.not_tried.append(
                    "what enters the model as text: the tokenizers of the script read it in different ways"
                )

    def _peek(self) -> None:
        if not self._first.loaders:
            return
        self._progress("looking into the loaders")
        settings = self._audit.settings
        look = partial(peeking.peek, settings, self._first.loaders, self._first.current)
        try:
            peeked = apart(look, peeking.SECONDS)
        except NotForked as why:
            self.briefing.not_tried.append(f"the loaders: {why}")
            return
        self.briefing.loaders = peeked.loaders
        self._audit.session.open(peeked.said)

    # -- what copies of the model do --------------------------------------------------------------------------

    def _try(self, optimizer: torch.optim.Optimizer) -> None:
        told = self.briefing
        first = self._first
        first_losses = tuple(_first_losses(first, told.aims))
        mixing = trained = None
        try:
            replay = Replay(first)
        except NoReplay as why:
            told.not_tried.append(f"the model on copies: {why}")
        else:
            self._progress("comparing one sample with others beside it")
            mixing = self._mixing(replay)
            self._progress("training a copy on one batch")
            trained = self._overfit(replay, optimizer)
        unmoved = () if trained is None else tuple(self._unmoved(replay, trained))
        flight = Flight(
            mixing,
            None if trained is None else trained.overfitting,
            first_losses,
            unmoved,
            tuple(_one_target(first, told)),
        )
        told.tried += words.tried(flight)
        self._audit.session.ask("flight", flight)

    def _mixing(self, replay: Replay) -> Mixing | None:
        try:
            return probing.mixing(replay, _samples(self._first.current))
        except NoReplay as why:
            self.briefing.not_tried.append(f"whether samples mix: {why}")
        except Exception as error:  # noqa: BLE001 - the script's own code, which may not like such a batch
            keep(error)
            name = type(error).__name__
            self.briefing.not_tried.append(f"whether samples mix: it raised `{name}`: {oneline(error)}")
        return None

    def _overfit(self, replay: Replay, optimizer: torch.optim.Optimizer) -> Training | None:
        held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        try:
            return probing.overfit(
                replay, ReplayedLoss(self._first, replay.call), held | construction.held().keys()
            )
        except NoReplay as why:
            self.briefing.not_tried.append(f"whether one batch can be learnt: {why}")
        return None

    def _unmoved(self, replay: Replay, trained: Training) -> Iterator[Unmoved]:
        """Weights without a gradient of layers that something passed through; not experts that no token was routed to."""
        names = self._audit.session.names
        for name, steps in trained.silent.items():
            parameter = names.parameter(tensor := replay.model.get_parameter(name))
            layer = parameter.layer
            if tensor.dim() > 1 and (layer is None or id(layer.module) in self._called):
                yield Unmoved(parameter.place, parameter.name, steps)


def _samples(known: KnownLoader | None) -> int:
    """How many samples the last batch of a loader has; 0 where that cannot be told.

    Without a loader the first dimension may as well be that of time, or the nodes of a graph.
    """
    sizes = (
        {tensor.shape[0] if tensor.dim() else 0 for _, tensor in tensors(known.batch)}
        if known is not None
        else {0}
    )
    if len(sizes) != 1 or not (size := sizes.pop()):
        raise NoReplay("no `DataLoader` says how many samples the batch has")
    return size


def _first_losses(first: FirstStep, aims: list[Aim]) -> Iterator[FirstLoss]:
    """Those of the losses alone that are plain means over the batch, of which it is known what a guess would have."""
    plain = {"weight", "pos_weight", "label_smoothing", "reduction"}
    for loss, aim in zip(first.losses, aims, strict=False):
        is_plain = len(loss.args) <= 2 and not any(
            loss.kwargs.get(name) not in (None, 0.0, "mean") for name in plain
        )
        logits = loss.name in ("cross_entropy", "nll_loss", "binary_cross_entropy_with_logits")
        if (
            logits
            and is_plain
            and aim.chance is not None
            and aim.value is not None
            and len(first.losses) == 1
        ):
            yield FirstLoss(loss.place, loss.name, aim.value, aim.chance)


def _one_target(first: FirstStep, told: Briefing) -> Iterator[OneTarget]:
    """Targets of one class alone. A batch of samples may have them by chance, so all of the data must; its tokens may not."""
    labels = [each.labels for each in told.loaders if each.trains and each.whole]
    reads_tokens = any(
        given.of_integers and len(given.shape) > 1 for one in told.entrances for given in one.inputs
    )
    for loss, aim in zip(first.losses, told.aims, strict=False):
        ignored = loss.kwargs.get("ignore_index", -100)
        counted = [(target, count) for target, count in aim.target.counts if target != ignored]
        if loss.name not in _BY_CLASS or len(counted) != 1:
            continue
        [(target, count)] = counted
        if not reads_tokens:
            count = next((own[0][1] for own in labels if [label for label, _ in own] == [target]), 0)
        if count >= _ENOUGH:
            yield OneTarget(loss.place, loss.name, target, count)


def _aim(loss: LossCall) -> Aim:
    given, target = loss.given(0, "input"), loss.given(1, "target")
    aim = Aim(loss.name, loss.place.path, loss.place.line, figures("target", target))
    result = loss.result
    if isinstance(result, Tensor) and result.numel() == 1:
        aim.value = float(result.detach())
    if loss.name in _BY_CLASS and not target.is_floating_point() and given.dim():
        classes = given.shape[1] if given.dim() > 1 else given.shape[0]
        aim.chance = math.log(classes) if classes > 1 else None
        ignored = loss.kwargs.get("ignore_index", -100)
        if target.numel():
            aim.ignored = float((target.detach() == ignored).count_nonzero()) / target.numel()
    elif loss.name.startswith("binary_cross_entropy"):
        aim.chance = math.log(2)
    return aim


def shown_in(stream: TextIO, audit: Audit) -> Callable[[Briefing], object]:
    """Writes what there is to show into a stream; that nobody can read it is no reason to stop the run."""

    def write(briefing: Briefing) -> None:
        with Shield(OSError, ValueError):
            shown = text.rendered(briefing, audit.settings.root, color=wants_color(stream))
            print(shown, file=stream, flush=True)

    return write
