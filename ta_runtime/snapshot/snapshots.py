"""Takes snapshots of a training: at scheduled steps, what each tensor holds before it can be changed in place.

At such a step calls of modules, `backward` and loaders are wrapped, and let go of when it is over. Between them torch
calls two functions for each step of an optimizer, which count it.
"""

import atexit
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ta_lint.core.errors import UsageError
from ta_runtime import ranks, reports
from ta_runtime.measure.distribution import columns
from ta_runtime.naming import Names, held
from ta_runtime.probes import hub
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.compile import Compilers, traced, uncompiled
from ta_runtime.probes.counter import StepCounter
from ta_runtime.probes.guard import FaultBarrier
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.registers import Register
from ta_runtime.probes.undo import Undo
from ta_runtime.runs import RunWriter
from ta_runtime.runs.schema import KINDS
from ta_runtime.snapshot import environment, sinks
from ta_runtime.snapshot.loaders import BatchWatch, LoaderSettings
from ta_runtime.snapshot.losses import LossWatch
from ta_runtime.snapshot.records import Records, outline
from ta_runtime.snapshot.schedule import Schedule, resolve
from ta_runtime.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from types import TracebackType


class Snapshots:
    """Writes records of a training into the folder of a run.

    Use it as a context manager around the training loop, or call `start` and `stop`. A folder must not hold a run yet.
    """

    def __init__(
        self,
        folder: "str | Path | RunWriter",
        model: nn.Module | None = None,
        optimizer: "torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None" = None,
        *,
        schedule: "str | Schedule | Callable[[int], object]" = "first 3, every 1000",
        of: Iterable[str] = KINDS,
        statistics: str | Iterable[str] = (),
        mask: bool | Sequence[str] = True,
        form: Literal["columns", "yaml"] = "columns",
        start_step: int = 0,
        names: Names | None = None,
    ) -> None:
        """What is taken, and when.

        Args:
            folder: that of the run, or its URL for fsspec, or what writes into it.
            model: the model that trains; None: every model whose forward pass begins with gradients.
            optimizer: what trains it, one or several; None: every optimizer of this process.
            schedule: at which steps, counted from 0: `first 3, every 1000`, `at 10, 20`, `on incident`, `never`; or a
                function that is given the number of each step.
            of: kinds of records, of `runs.schema.KINDS`: `("parameter", "gradient")`.
            statistics: names of `statistics.NAMES` to record beside each digest, or `all`.
            mask: whether secrets are masked; patterns of names of environment variables mask those as well.
            form: `columns` writes Parquet, `yaml` the files of fkat's Introspection, `introspection/fit/step=0/rank0.yaml`.
            start_step: the number of the first step, of a run that goes on from a checkpoint.
            names: what layers and parameters are called, if somebody else names those of this run as well.

        Raises:
            UsageError: an argument is wrong, or the folder holds a run already.
        """
        if form not in ("columns", "yaml"):
            raise UsageError(f"form: {form!r} is neither 'columns' nor 'yaml'")
        self.schedule = resolve(schedule)
        self._of = _kinds(of)
        self._columns = columns(statistics)
        self._mask = mask if isinstance(mask, bool) else (mask,) if isinstance(mask, str) else tuple(mask)
        self._sink = sinks.made(folder, form)
        self._model = model
        optimizers = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else optimizer
        self._names = names or Names()
        if model is not None:  # so that an optimizer which steps before it is called finds the names
            self._names.add(model)
        failed = reports.FailureReporter(
            self.stop, "a snapshot is not complete", "no more snapshots are taken"
        )
        self._guard = FaultBarrier(failed)
        self._steps = StepCounter(optimizers, self._before_step, _nothing, self._over, self._guard.run)
        self._steps.index = self._start = start_step
        self._compilers = Compilers(self._compiles)
        self._losses = LossWatch(self._note_loss)
        self._loader_settings = LoaderSettings()
        self._batches = BatchWatch(self._ask, self._note_batch, self._note_end)
        self._placed = (
            False  # whether it is known which rank this is, and written what is before the first step
        )
        self._reason: str | None = None
        self._snapshot: Snapshot | None = None  # of the step that runs, if it is one to look at
        self._undo = Undo()
        self._watching = Undo()  # what is wrapped for this step
        self._calls: Undo | None = None  # of modules
        self._root: nn.Module | None = None
        self._looks = False
        self._described: Register[bool] = Register()
        self._variables: dict[str, str] = {}

    # -- for users --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Record the environment and watch from here on; nothing happens if it is on."""
        if self._guard.on:
            return
        self._guard.on = True
        self._guard(self._environment)()
        atexit.register(self.stop)
        try:
            run = self._guard.run
            self._undo.append(self._steps.detach)
            self._steps.attach()
            for part in (self._compilers, self._loader_settings):
                self._undo.append(hub.subscribe(part, run))
            self._undo.append(hub.watch("join_group", lambda call: self._joined, run))
            if (dist.is_available() and dist.is_initialized()) or (ranks.known() and not reports.is_child()):
                self._guard(self._place)()
            self._begin()
        except BaseException:
            self.stop()
            raise

    def stop(self, *, raises: bool = False) -> None:
        """Let go of torch and write what is there, also of a step that is not over.

        One of which nothing ran is not written, unless the run ends because something `raises`.
        """
        if not self._guard.on:
            return
        self._guard(self._end)(only_if_it_began=not raises)
        self._guard.on = False
        atexit.unregister(self.stop)
        self._let_go()
        self._undo()
        self._sink.flush()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        self.stop(raises=error is not None)

    @property
    def paused(self) -> bool:
        """Whether what runs now is no training, such as a validation between two steps."""
        return self._guard.paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._guard.paused = paused
        self._steps.wake()

    @property
    def step(self) -> int:
        """The step that runs, or is to begin."""
        return self._steps.index

    def count_from(self, step: int) -> None:
        """Give this number to the step that runs, or is to begin: of a run that goes on from a checkpoint."""
        if step != self.step:
            if not self._steps.counted:
                self._start = step
            self._steps.index = step
            self._guard(self._begin_anew)()

    def take(self, reason: str = "") -> None:
        """Record now what lies in memory: random states, parameters, buffers, gradients, states of optimizers."""
        self._guard(self._take)(reason)

    def take_next(self, reason: str = "") -> None:
        """Record the next step, whatever the schedule says."""
        self._reason = reason
        self._steps.wake()

    # -- steps ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        reason, self._reason = self._reason, None
        if reason is None and not self.schedule.due(self.step, self._start):
            return
        self._snapshot = self._new()
        if reason:
            self._snapshot.records.text("configuration", "snapshot.reason", reason)
        run = self._guard.run
        self._watching.append(self._losses.forget)
        for part in (self._batches, self._losses):
            self._watching.append(hub.subscribe(part, run))
        if self._compilers.used:
            self._skip_layers()
        else:
            self._calls = hub.watch("call_module", self._calling, self._guard.tried)
            self._watching.append(self._calls)

    def _begin_anew(self) -> None:
        self._steps.wake()
        self._let_go()
        self._begin()

    def _over(self) -> None:
        """A step is over, and the next begins."""
        self._end()
        self._let_go()
        self._begin()
        self._sink.catch_up()
        if self._snapshot is None and not self._sink.waits:
            self._steps.doze(self.schedule.following(self.step, self._start))

    def _end(self, only_if_it_began: bool = False) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None and (snapshot.began or not only_if_it_began):
            self._sink.add(snapshot.rows())

    def _new(self) -> Snapshot:
        return Snapshot(
            Records(self.step, self._of, self._columns, mask=self._mask is not False), self._names
        )

    def _let_go(self) -> None:
        self._watching()
        self._snapshot = self._root = self._calls = None

    def _before_step(
        self, optimizer: torch.optim.Optimizer, has_closure: bool
    ) -> Callable[[], object] | None:
        self._place()
        snapshot = self._snapshot
        if snapshot is None:
            return None
        snapshot.settings(self._changed)
        snapshot.optimizer(optimizer, gradients=not has_closure)
        # forward and backward pass run inside the step
        return partial(self._guard(snapshot.gradients), optimizer) if has_closure else None

    def _take(self, reason: str) -> None:
        running = self._snapshot
        snapshot = running or self._new()
        snapshot.records.text("configuration", "snapshot.reason", reason or "asked for")
        snapshot.settings(self._changed)
        if running is not None:  # which takes the rest at its own time
            return
        described = self._described.instances()
        models = {id(model): model for model in (self._model, *described) if model is not None}
        for model in models.values():
            snapshot.model(model, describe=self._is_new(model))
        for optimizer in self._steps.optimizers:
            snapshot.optimizer(optimizer)
        self._sink.add(snapshot.records.rows())
        self._sink.catch_up()

    def _environment(self) -> None:
        records = Records(-1, self._of, mask=self._mask is not False)
        self._variables = dict(environment.variables(self._mask))
        records.texts("environment", lambda: self._variables.items())
        records.texts("package", environment.packages)
        records.texts("configuration", environment.software)
        self._sink.add(records.rows())

    def _place(self) -> None:
        """It is known which rank this is, or that it trains alone: a kill no longer loses what was before the first step."""
        if not self._placed:
            self._placed = True
            self._sink.begin()

    def _joined(self, call: Call) -> None:
        """This process has joined a process group."""
        if not call.raised:
            self._place()

    def _changed(self) -> Iterator[tuple[str, str]]:
        """The environment variables that the run has set since they were recorded."""
        now = dict(environment.variables(self._mask))
        before, self._variables = self._variables, now
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                yield name, now.get(name, "(not set)")

    # -- forward passes ---------------------------------------------------------------------------------------

    def _calling(self, call: Call) -> End | None:
        called, *args = call.args
        if traced():
            return None
        module = uncompiled(called)
        is_root = self._root is None
        if is_root:
            self._guard.run(self._enter, module, tuple(args), call.kwargs)
        return partial(self._called, module, is_root)

    def _called(self, module: nn.Module, is_root: bool, call: Call) -> None:
        if not call.raised:
            self._guard.run(self._leave, module, call.result)
        if is_root:
            self._root, self._looks = None, False

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The outermost module of a forward pass is called."""
        self._root, self._looks = module, False
        snapshot = self._snapshot
        if snapshot is None or in_backward():
            return
        if not torch.is_grad_enabled():
            snapshot.batches.evaluated()
            return
        model = self._model_of(module)
        if model is None:
            return
        self._place()
        snapshot.settings(self._changed)
        snapshot.trains()
        given = kwargs if not args else (*args, kwargs) if kwargs else args
        prefix = ""
        if not _has_tensors(module):  # a criterion: what it is given of the model is an activation
            given, prefix = _targets(args, kwargs), type(module).__name__
        _batch(snapshot.records, given, prefix)
        if not prefix:
            self._looks = True
            snapshot.model(model, describe=self._is_new(model))

    def _model_of(self, module: nn.Module) -> nn.Module | None:
        """The model that is called with a module: the given one, if its forward pass or a part of it begins."""
        model = self._model
        if model is None or not _has_tensors(module):
            return module
        belongs = any(part is model for part in module.modules()) or any(
            part is module for part in model.modules()
        )
        return model if belongs else None

    def _is_new(self, model: nn.Module) -> bool:
        is_new = model not in self._described
        self._described.add(model, True)
        return is_new

    def _leave(self, module: nn.Module, result: Any) -> None:
        if self._looks and self._snapshot is not None:
            self._snapshot.output(module, result)

    def _skip_layers(self) -> None:
        """Look at the calls of compiled models alone: what is wrapped further inside would be compiled into them."""
        self._watching.append(hub.watch("call_compiled", self._calling, self._guard.tried))
        if self._snapshot is not None:
            note = "not taken, as the process uses torch.compile"
            self._snapshot.records.text("configuration", "snapshot.activations", note)

    def _compiles(self) -> None:
        """The process compiles a model."""
        if self._calls is not None:
            self._calls()
            self._calls = None
            self._skip_layers()

    # -- losses and batches -----------------------------------------------------------------------------------

    def _note_loss(self, loss: Tensor) -> None:
        if (snapshot := self._snapshot) is not None:
            snapshot.trains()
            snapshot.records.tensor("loss", "loss", loss)

    def _ask(self) -> None:
        """A batch is about to be drawn."""
        if self._snapshot is not None:
            self._snapshot.settings(self._changed)

    def _note_batch(self, iterator: Any, batch: Any) -> None:
        if (snapshot := self._snapshot) is not None:
            records = snapshot.records.apart()
            _batch(records, batch, "loaded")
            if (count := getattr(iterator, "_num_yielded", None)) is not None:
                records.text("batch", "loaded.(index)", str(count - 1))
            records.texts("configuration", lambda: self._loader_settings.of(iterator), "DataLoader.")
            snapshot.batches.drawn(iterator, records)

    def _note_end(self, iterator: Any) -> None:
        if (snapshot := self._snapshot) is not None:
            snapshot.batches.ended(iterator)


def _kinds(of: Iterable[str]) -> frozenset[str]:
    kinds = frozenset([of] if isinstance(of, str) else of)
    if strange := kinds - set(KINDS):
        raise UsageError(f"of: {min(strange)!r} is none of {', '.join(KINDS)}")
    return kinds


def _batch(records: Records, value: Any, prefix: str) -> None:
    if records.wants("batch"):
        records.text("batch", f"{prefix}.(structure)".lstrip("."), outline(value))
        records.values("batch", value, prefix)


def _nothing(*_: object) -> None:
    pass


def _has_tensors(module: nn.Module) -> bool:
    both = chain(held(module, nn.Module.named_parameters), held(module, nn.Module.named_buffers))
    return next(both, None) is not None


def _targets(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a criterion without what a model has computed."""
    given = {str(index): value for index, value in enumerate(args)} | kwargs
    return {
        key: value for key, value in given.items() if not (isinstance(value, Tensor) and value.requires_grad)
    }
