"""What follows from the first difference of two runs: its likely cause, from what it is of and what was equal before it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ta_runtime.diff.settings import effect
from ta_runtime.diff.sizes import Size

Row = Mapping[str, Any]

_ROUNDED = 256  # epsilons of its dtype, by which a result may change if it is added up in another order


@dataclass(frozen=True)
class Seen:
    """What is known around the first difference."""

    equal: frozenset[str] = frozenset()
    """Kinds that were compared at its step before its own, all equal."""
    previous: int | None = None
    """The step that was compared before its own, all equal; None if its own is the first."""
    differing: int = 1
    """Records of its kind that differ at its step and rank."""
    compared: int = 1
    elsewhere: tuple[int, int] | None = None
    """Of a batch, the step and rank at which B has that of A."""
    idle: tuple[str, ...] = ()
    """Random generators that differ, and that nothing draws from while the runs train."""
    last: str = ""
    """Of an activation, the one before it, which is equal."""
    module: str = ""
    """Of an activation, what the module is in A, such as `Dropout(p=0.5)`."""
    across_ranks: bool = False
    harmless: bool = False
    """Of a setting, whether no number differs."""


@dataclass(frozen=True)
class _Case:
    name: str
    step: int
    a: Row
    b: Row
    size: Size | None
    seen: Seen

    @property
    def since(self) -> str:
        """When it came about, if all was equal before."""
        before = self.seen.previous
        if before is None:
            return (
                "before the first step" if self.step <= 0 else f"before step {self.step}, the first of both"
            )
        return f"in step {before}" if self.step == before + 1 else f"in steps {before} to {self.step - 1}"

    @property
    def gap(self) -> bool:
        """Whether steps that were not recorded lie between."""
        return self.seen.previous is not None and self.step > self.seen.previous + 1

    @property
    def partly(self) -> bool:
        """Whether but a few of its elements differ."""
        return (
            self.size is not None and self.size.complete and 0 < 2 * self.size.differing < self.size.elements
        )

    @property
    def rounded(self) -> bool:
        """Whether it is as small as what another order of summation makes."""
        if self.size is None or not self.size.relative or not self.size.differing or self.size.non_finite:
            return False
        dtype = getattr(torch, str(self.a["dtype"]), None)
        if not isinstance(dtype, torch.dtype) or not (dtype.is_floating_point or dtype.is_complex):
            return False
        eps: float = torch.finfo(dtype).eps
        return self.size.relative <= min(_ROUNDED * eps, math.sqrt(eps) / 4)

    @property
    def factor(self) -> str | None:
        """B in terms of A, where it is a multiple; of a scalar, which always is one, a whole one."""
        if self.size is None or (factor := self.size.factor) is None or abs(factor - 1) < 1e-3:
            return None
        whole = abs(factor) if abs(factor) > 1 else 1 / abs(factor)
        if self.size.kept < 3 and abs(whole - round(whole)) > 1e-5 * whole:
            return None
        return f"B is {factor:.4g} times A"


def follows(
    kind: str, name: str, step: int, a: Row | None, b: Row | None, size: Size | None, seen: Seen
) -> str:
    """The likely cause of the first difference, in sentences."""
    if kind in ("environment", "package", "configuration"):
        return _setting(kind, name, step, seen)
    if a is None or b is None or (a["dtype"] is None) != (b["dtype"] is None):
        in_a = b is None or (a is not None and a["dtype"] is not None)
        return _ONLY[kind].format(*("A", "B") if in_a else ("B", "A"))
    if a["dtype"] is None and kind in _TEXTS:
        return _TEXTS[kind]
    case = _Case(name, step, a, b, size, seen)
    if seen.across_ranks:
        return _across(kind, case)
    if kind != "rng" and a["dtype"] != b["dtype"]:
        return _dtype(kind, case)
    if kind != "rng" and a["shape"] != b["shape"]:
        return _SHAPES[kind]
    return {
        "rng": _rng,
        "batch": _batch,
        "parameter": _parameter,
        "buffer": _buffer,
        "activation": _activation,
        "loss": _loss,
        "gradient": _gradient,
        "optimizer": _optimizer,
    }[kind](case)


_ONLY = {
    "rng": "{0} has a random generator that {1} does not have, as of a library or a device that only {0} uses.",
    "batch": "The batches are made otherwise: only {0} has this entry.",
    "parameter": "The models are built otherwise: only that of {0} has this parameter.",
    "buffer": "The models are built otherwise: only that of {0} has this buffer.",
    "activation": "Only {0} runs this layer here: another model, or another way through its forward pass.",
    "loss": "Only {0} computes this loss.",
    "gradient": "Only in {0} does this parameter get a gradient: in {1} it is frozen, unused or detached from the loss.",
    "optimizer": "The optimizers are of another kind, or hold other parameters: only that of {0} has this state.",
}

_TEXTS = {
    "batch": "The batches are put together otherwise, or hold other values that are no tensors.",
    "parameter": "Other parameters share one tensor: weights are tied otherwise.",
    "buffer": "Other buffers share one tensor.",
    "gradient": "It has a gradient in neither: in one run it is frozen, in the other the loss does not depend on it.",
}

_SHAPES = {
    "batch": "The batches are of different sizes: another batch size, a last batch that is dropped or not, or another padding.",
    "parameter": "The models are built otherwise: another size of this layer.",
    "buffer": "The models are built otherwise: another size of this buffer.",
    "activation": "This layer has another output although its inputs begin alike: another configuration of it or of what is before it.",
    "loss": "The loss is reduced otherwise: one is a scalar, or of another shape.",
    "gradient": "The gradients are laid out otherwise, as in shards.",
    "optimizer": "The optimizer keeps another kind of state, such as factored or sharded moments.",
}


def _setting(kind: str, name: str, step: int, seen: Seen) -> str:
    known = effect(kind, name)
    what = f": {known}" if known else ""
    if seen.across_ranks:
        return f"The ranks run under different settings{what}. All of them should have the same."
    when = (
        "The runs were not started alike"
        if step < 0
        else f"From step {step} on the runs are configured differently"
    )
    if seen.harmless:
        return f"{when}{what}. It changed none of the numbers that were recorded."
    return f"{when}{what}. Set it alike in both, and compare again: what differs later may follow from it."


def _dtype(kind: str, case: _Case) -> str:
    a, b = case.a["dtype"], case.b["dtype"]
    if kind == "activation":
        return f"The layer computes in {a} in A and in {b} in B: autocast is on in one alone or of another dtype, or something is cast."
    if kind == "batch":
        return f"The data are loaded as {a} in A and as {b} in B: a transform or a collate function differs."
    return f"It is {a} in A and {b} in B: a cast such as `.half()` or `.to(dtype)`, another default dtype, or another precision setting."


def _before_training(case: _Case) -> str:
    """What may have been drawn, and by what, before the runs train."""
    if case.seen.previous is not None or not case.seen.idle:
        return ""
    names = " and ".join(case.seen.idle)
    return f" The random generators of {names} differ as well: if they are used before the first step, seed them."


def _rng(case: _Case) -> str:
    alone = "" if case.seen.differing == case.seen.compared else (
        f" Of {case.seen.compared} random generators {case.seen.differing} differ{'s' * (case.seen.differing == 1)}: the others"
        " are seeded, and used, alike."
    )  # fmt: skip
    if case.seen.previous is None:
        return (
            "The random generators differ when the first batch comes: the runs are seeded differently or not at all, or one drew"
            f" more random numbers while it was set up. Seed python, numpy and torch alike.{alone}"
        )
    return (
        f"One run drew more random numbers than the other {case.since}, though what was recorded of it is equal: dropout,"
        f" augmentation or sampling in one alone, or an evaluation between steps.{alone}"
    )


def _batch(case: _Case) -> str:
    return _data(case) + _before_training(case)


def _data(case: _Case) -> str:
    seen, size = case.seen, case.size
    rng = " while the random generators are equal" if "rng" in seen.equal else ""
    if seen.elsewhere is not None:
        step, rank = seen.elsewhere
        where = f"step {step}" if rank == case.a["rank"] else f"step {step} on rank {rank}"
        return (
            f"The same data come in another order{rng}: B has this batch at {where}. Look at the sampler and its generator,"
            " shuffling, the number of workers, and the order in which files are listed."
        )
    if size is not None and size.reordered:
        return f"The batch holds the same elements in another order{rng}: its samples are collated or listed in another order."
    if size is not None and size.rows is not None and size.rows[0] < size.rows[1]:
        count, rows = size.rows
        samples = f"{count} of {rows} samples differ" if count > 1 else f"1 of {rows} samples differs"
        return (
            f"{samples}{rng}: the order of the data is the same, but not what is in them. Files or labels were changed, or a"
            " transform draws random numbers from a generator that is not seeded."
        )
    if size is not None and size.blocks is not None and 0 < size.blocks[0] <= size.blocks[1] // 4:
        return (
            f"A part of the batch differs{rng}: the order of the data is the same, but not what is in them. Files were changed,"
            " or a transform draws random numbers from a generator that is not seeded."
        )
    return (
        f"Other data{rng}: another order of the samples (a sampler with a generator of its own, the number of workers, the"
        " order in which files are listed), other random transforms in the workers, or another data set."
    )


def _parameter(case: _Case) -> str:
    share = _share(case, "parameter")
    if case.seen.previous is None:
        rng = " though the random generators are equal now" if "rng" in case.seen.equal else ""
        if case.rounded:
            return f"The weights differ {case.since}{rng}, by rounding: they were computed or cast otherwise.{share}"
        return (
            f"The weights differ {case.since}{rng}: another initialisation, another order in which layers are made,"
            f" or another checkpoint that was loaded.{share}{_before_training(case)}"
        )
    if case.rounded and case.size is not None and case.seen.differing > 1:
        return (
            f"Equal gradients and optimizer state gave other weights {case.since}, by rounding: another implementation of"
            f" the optimizer (`foreach`, `fused`), or device.{share}"
            if not case.gap
            else f"The weights came apart {case.since}, which were not recorded, by rounding.{share}"
        )
    if case.partly:
        return (
            f"Only some of its elements differ, which an optimizer's step would all change: it was written {case.since}, outside"
            f" of the step, or its gradients are sparse.{share}"
        )
    if case.gap:
        return f"The weights came apart {case.since}, of which not all were recorded.{share}"
    return (
        f"The weights came apart {case.since} after all that was recorded of it was equal: in the optimizer's step (learning"
        f" rate, weight decay), or they were written outside of it (clipping, averaging, a checkpoint, an edit).{share}"
    )


def _buffer(case: _Case) -> str:
    if case.name.endswith("num_batches_tracked"):
        return f"The runs made different numbers of forward passes in training mode {case.since}."
    if case.name.endswith(("running_mean", "running_var")):
        if case.partly:
            return f"Only some of its elements differ, which a forward pass would all change: it was written {case.since}."
        return (
            f"Batch normalisation took up other statistics {case.since}: it was in evaluation mode in one run, its momentum"
            " differs, or it saw a batch that was not recorded, such as one of an evaluation."
        )
    if case.seen.previous is None:
        return (
            f"The buffer differs {case.since}: it is made otherwise, or was loaded from another checkpoint."
        )
    return f"The buffer was written otherwise {case.since}, though the parameters are equal."


def _activation(case: _Case) -> str:
    inputs = (
        "with equal inputs and parameters"
        if {"batch", "parameter"} <= case.seen.equal
        else "(inputs or parameters were not recorded)"
    )
    where = f"`{case.name}` is the first layer whose output differs, {inputs}"
    if case.rounded:
        return (
            f"{where}, by rounding: a kernel that adds up in another order each time, another number of threads, or another"
            " device. `torch.use_deterministic_algorithms(True)` names kernels that do."
        )
    if case.size is not None and case.size.zeros is not None and "ReLU" not in case.seen.module:
        a, b = case.size.zeros
        if min(a, b) < 0.01 and max(a, b) > 0.05:
            one, other = ("A", "B") if a > b else ("B", "A")
            return (
                f"{where}: {one} has zeros where {other} has none, as by dropout that is on in {one} alone."
            )
        if abs(a - b) > 0.02 and case.size.non_finite == 0:
            return f"{where}: {a:.0%} of it are zeros in A, {b:.0%} in B, as by another dropout probability."
    if case.factor is not None:
        return f"{where}: {case.factor}, so that a scale differs."
    kind = case.seen.module.partition("(")[0]
    if kind.startswith(("BatchNorm", "SyncBatchNorm", "InstanceNorm")):
        return (
            f"{where}: it is a {kind}, which in evaluation mode uses its running statistics, and in training mode those of the"
            " batch. It is in another mode in one run (`train()`, `eval()`), or normalises otherwise."
        )
    if "Dropout" in kind:
        return f"{where}: it is a {kind}, whose mask was drawn otherwise, or which is in another mode in one run."
    what = f" ({case.seen.module})" if kind else ""
    between = (
        f", or what is computed between `{case.seen.last}` and it, such as dropout by a function"
        if case.seen.last
        else ""
    )
    return (
        f"{where}{what}. It computes something else{between}. Compare its mode (`train()`, `eval()`), its options, and the code"
        " around it."
    )


def _loss(case: _Case) -> str:
    known = (
        "The activations are equal, the loss is not"
        if "activation" in case.seen.equal
        else "The loss differs"
    )
    if case.rounded:
        return f"{known}, by rounding: it is added up in another order, or in another precision."
    if case.factor is not None:
        return f"{known}, and {case.factor}: another reduction (`mean`, `sum`), weight, or number of accumulated batches."
    return f"{known}: another loss function, or other weights, smoothing, ignored index or targets of it."


def _gradient(case: _Case) -> str:
    known = (
        "The loss is equal, this gradient is not" if "loss" in case.seen.equal else "This gradient differs"
    )
    share = _share(case, "gradient")
    if case.rounded:
        return (
            f"{known}, by rounding: the same terms are added up in another order, in a kernel that is not deterministic, in"
            f" the accumulation of micro-batches, or in the reduction over ranks.{share}"
        )
    if case.factor is not None:
        return f"{known}, and {case.factor}: the loss is scaled or divided otherwise, or gradients are clipped in one run.{share}"
    return (
        f"{known}: the backward pass differs, as by a hook, a tensor that is detached, gradients that were not cleared, or"
        f" clipping.{share}"
    )


def _optimizer(case: _Case) -> str:
    if case.a["dtype"] is None:
        known = effect("configuration", case.name)
        return f"The optimizer is configured otherwise{f': {known}' if known else ''}, by its arguments or by a scheduler."
    if case.seen.previous is None:
        return "The state of the optimizer differs at the first step: it was loaded from another checkpoint, or is kept otherwise."
    scaled = f" {case.factor}: another coefficient, such as `betas` or `momentum`." if case.factor else ""
    if case.rounded:
        return f"The optimizer's state differs by rounding {case.since}: another implementation of it (`foreach`, `fused`)."
    return (
        f"Equal gradients and weights, but another state of the optimizer {case.since}: it was loaded, reset or edited, or"
        f" has other coefficients.{scaled}"
    )


def _across(kind: str, case: _Case) -> str:
    if kind == "gradient":
        return (
            "Gradients are not the same on all ranks after the reduction: a parameter is outside of the wrapper, an"
            " accumulation (`no_sync`) was not ended, or a rank stepped on its own."
        )
    if case.seen.previous is None:
        return (
            f"The ranks begin with different {_PLURALS[kind]}: they were initialised after different seeds and not sent from"
            " one rank, as DDP does at construction, or written after that."
        )
    return (
        f"The replicas came apart {case.since}: a rank stepped without the reduction of its gradients, or skipped a step, or"
        f" its {_PLURALS[kind]} were written on that rank alone."
    )


_PLURALS = {"parameter": "parameters", "buffer": "buffers", "optimizer": "optimizer states"}


def _share(case: _Case, noun: str) -> str:
    differing, compared = case.seen.differing, case.seen.compared
    if compared < 2:
        return ""
    if differing == compared:
        return f" All {compared} {noun}s differ."
    return f" {'It is the only one' if differing == 1 else f'{differing} differ'} of {compared} {noun}s."
