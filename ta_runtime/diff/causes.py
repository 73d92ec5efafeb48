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
    "batch": "The batches have different sizes: compare the batch size, `drop_last` and the padding.",
    "parameter": "The models differ: this layer has another size.",
    "buffer": "The models differ: this buffer has another size.",
    "activation": "The output of this layer has another shape: the layer, or a layer before it, is configured differently.",
    "loss": "The loss has another shape: the two runs use different values of `reduction`.",
    "gradient": "The gradients have another shape, for example because one run shards them.",
    "optimizer": "The optimizer keeps another kind of state, for example factored or sharded moments.",
}


def _setting(kind: str, name: str, step: int, seen: Seen) -> str:
    known = effect(kind, name)
    what = f": {known}" if known else ""
    if seen.across_ranks:
        return f"The ranks have different settings{what}. Give all ranks the same."
    when = (
        "The runs were started with different settings"
        if step < 0
        else f"From step {step} on the runs are configured differently"
    )
    if seen.harmless:
        return f"{when}{what}. All recorded numbers are the same anyway."
    return f"{when}{what}. Use the same value in both runs and compare again: later differences may come from it."


def _dtype(kind: str, case: _Case) -> str:
    a, b = case.a["dtype"], case.b["dtype"]
    if kind == "activation":
        return f"The layer computes in {a} in A and in {b} in B: autocast is on in only one run, uses another dtype, or a tensor is cast."
    if kind == "batch":
        return f"The data is loaded as {a} in A and as {b} in B: a transform or a collate function differs."
    return f"It is {a} in A and {b} in B: a cast such as `.half()` or `.to(dtype)`, another default dtype, or another precision setting."


def _before_training(case: _Case) -> str:
    """What may have been drawn, and by what, before the runs train."""
    if case.seen.previous is not None or not case.seen.idle:
        return ""
    names = " and ".join(case.seen.idle)
    return f" The random generators of {names} differ too: seed them if the script draws from them before the first step."


def _rng(case: _Case) -> str:
    alone = "" if case.seen.differing == case.seen.compared else (
        f" Of {case.seen.compared} random generators {case.seen.differing} differ{'s' * (case.seen.differing == 1)}: the others"
        " are equal."
    )  # fmt: skip
    if case.seen.previous is None:
        return (
            "The random generators differ at the first batch: the runs have different seeds or none, or one run drew"
            f" more random numbers during setup. Seed Python, NumPy and torch with the same seed in both runs.{alone}"
        )
    return (
        f"One run drew more random numbers than the other {case.since}, although all recorded tensors are equal: only one run uses dropout,"
        f" augmentation or sampling there, or evaluates between steps.{alone}"
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
            f"The data comes in another order{rng}: B has this batch at {where}. Compare the sampler and its generator,"
            " `shuffle`, `num_workers`, and the order in which files are listed."
        )
    if size is not None and size.reordered:
        return f"The batch has the same samples in another order{rng}: compare the collate function and the order of files."
    if size is not None and size.rows is not None and size.rows[0] < size.rows[1]:
        count, rows = size.rows
        samples = f"{count} of {rows} samples differ" if count > 1 else f"1 of {rows} samples differs"
        return (
            f"{samples}{rng}: the samples come in the same order, but their content differs. Files or labels were changed, or a"
            " transform draws random numbers from a generator without a seed."
        )
    if size is not None and size.blocks is not None and 0 < size.blocks[0] <= size.blocks[1] // 4:
        return (
            f"A part of the batch differs{rng}: the samples come in the same order, but their content differs. Files were changed,"
            " or a transform draws random numbers from a generator without a seed."
        )
    return (
        f"The batches hold different data{rng}: the samples come in another order (compare the sampler's generator, `num_workers`"
        " and the order of files), workers apply other random transforms, or the data set differs."
    )


def _parameter(case: _Case) -> str:
    share = _share(case, "parameter")
    if case.seen.previous is None:
        rng = " although the random generators are equal now" if "rng" in case.seen.equal else ""
        if case.rounded:
            return f"The weights differ {case.since}{rng}, by rounding only: they were computed or cast in different ways.{share}"
        return (
            f"The weights differ {case.since}{rng}: the runs use another initialisation, build their layers in another order,"
            f" or load another checkpoint.{share}{_before_training(case)}"
        )
    if case.rounded and case.size is not None and case.seen.differing > 1:
        return (
            f"Gradients and optimizer state are equal, but the weights differ {case.since} by rounding: the runs use another"
            f" implementation of the optimizer (`foreach`, `fused`) or another device.{share}"
            if not case.gap
            else f"The weights began to differ by rounding {case.since}, which were not recorded.{share}"
        )
    if case.partly:
        return (
            f"Only some elements differ, but an optimizer step changes all: code outside of the optimizer wrote to it"
            f" {case.since}, or its gradients are sparse.{share}"
        )
    if case.gap:
        return f"The weights began to differ {case.since}, of which not all were recorded.{share}"
    return (
        f"The weights began to differ {case.since}, although all that was recorded before is equal: the optimizer steps differ (learning"
        f" rate, weight decay), or other code writes to the weights (clipping, averaging, a checkpoint).{share}"
    )


def _buffer(case: _Case) -> str:
    if case.name.endswith("num_batches_tracked"):
        return f"The runs made a different number of forward passes in training mode {case.since}."
    if case.name.endswith(("running_mean", "running_var")):
        if case.partly:
            return f"Only some elements differ, but a forward pass changes all: other code wrote to it {case.since}."
        return (
            f"Batch norm has other running statistics {case.since}: one run had it in `eval()` mode, its `momentum`"
            " differs, or it saw a batch that was not recorded, for example of an evaluation."
        )
    if case.seen.previous is None:
        return f"The buffer differs {case.since}: it is initialised differently, or comes from another checkpoint."
    return f"The buffer was updated differently {case.since}, although the parameters are equal."


def _activation(case: _Case) -> str:
    inputs = (
        "with equal inputs and parameters"
        if {"batch", "parameter"} <= case.seen.equal
        else "(inputs or parameters were not recorded)"
    )
    where = f"`{case.name}` is the first layer whose output differs, {inputs}"
    if case.rounded:
        return (
            f"{where}, by rounding only: a kernel sums in another order each time, or the runs use another number of threads or"
            " another device. `torch.use_deterministic_algorithms(True)` names such kernels."
        )
    if case.size is not None and case.size.zeros is not None and "ReLU" not in case.seen.module:
        a, b = case.size.zeros
        if min(a, b) < 0.01 and max(a, b) > 0.05:
            one, other = ("A", "B") if a > b else ("B", "A")
            return f"{where}: {one} has zeros where {other} has none: probably dropout is on only in {one}."
        if abs(a - b) > 0.02 and case.size.non_finite == 0:
            return f"{where}: {a:.0%} of the values are zero in A, {b:.0%} in B: probably the dropout probability differs."
    if case.factor is not None:
        return f"{where}: {case.factor}. Compare the scale of its inputs and options."
    kind = case.seen.module.partition("(")[0]
    if kind.startswith(("BatchNorm", "SyncBatchNorm", "InstanceNorm")):
        return (
            f"{where}: it is a {kind}, which in evaluation mode uses its running statistics, and in training mode those of the"
            " batch. The runs have it in different modes (`train()`, `eval()`), or with other options."
        )
    if "Dropout" in kind:
        return f"{where}: it is a {kind}, which drew another mask, or is in another mode in one run."
    what = f" ({case.seen.module})" if kind else ""
    between = (
        f", or the code between `{case.seen.last}` and it does, for example `F.dropout`"
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
        return f"{known}, by rounding only: it is summed in another order or precision."
    if case.factor is not None:
        return f"{known}, and {case.factor}: compare `reduction` (`mean`, `sum`), loss weights, and the number of accumulated batches."
    return f"{known}: compare the loss function, its weights, `label_smoothing`, `ignore_index` and targets."


def _gradient(case: _Case) -> str:
    known = (
        "The loss is equal, this gradient is not" if "loss" in case.seen.equal else "This gradient differs"
    )
    share = _share(case, "gradient")
    if case.rounded:
        return (
            f"{known}, by rounding only: the same terms are summed in another order, by a nondeterministic kernel, by gradient"
            f" accumulation, or by the reduction over ranks.{share}"
        )
    if case.factor is not None:
        return f"{known}, and {case.factor}: the loss is scaled or divided differently, or only one run clips its gradients.{share}"
    return (
        f"{known}: the backward pass differs. Look for a hook, a detached tensor, gradients that were not cleared, or"
        f" clipping.{share}"
    )


def _optimizer(case: _Case) -> str:
    if case.a["dtype"] is None:
        known = effect("configuration", case.name)
        return f"The optimizer is configured differently{f': {known}' if known else ''}, by its arguments or by a scheduler."
    if case.seen.previous is None:
        return "The state of the optimizer differs at the first step: it was loaded from another checkpoint, or the optimizers differ."
    scaled = f" {case.factor}: another coefficient, such as `betas` or `momentum`." if case.factor else ""
    if case.rounded:
        return f"The optimizer state differs by rounding {case.since}: the runs use another implementation (`foreach`, `fused`)."
    return (
        f"Gradients and weights are equal, but the optimizer state differs {case.since}: it was loaded, reset or edited, or"
        f" has other coefficients.{scaled}"
    )


def _across(kind: str, case: _Case) -> str:
    if kind == "gradient":
        return (
            "Gradients differ between ranks after the reduction: a parameter is outside of the DDP wrapper, a"
            " `no_sync` block was not left, or a rank stepped on its own."
        )
    if case.seen.previous is None:
        return (
            f"The ranks begin with different {_PLURALS[kind]}: they were initialised with different seeds and never broadcast from"
            " one rank, as DDP does when it is built, or were written after that."
        )
    return (
        f"The replicas began to differ {case.since}: a rank stepped without reducing its gradients, or skipped a step, or"
        f" only that rank wrote to its {_PLURALS[kind]}."
    )


_PLURALS = {"parameter": "parameters", "buffer": "buffers", "optimizer": "optimizer states"}


def _share(case: _Case, noun: str) -> str:
    differing, compared = case.seen.differing, case.seen.compared
    if compared < 2:
        return ""
    if differing == compared:
        return f" All {compared} {noun}s differ."
    return f" {'It is the only one' if differing == 1 else f'{differing} differ'} of {compared} {noun}s."
