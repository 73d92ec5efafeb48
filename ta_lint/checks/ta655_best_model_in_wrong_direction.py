"""TA655: the best model is chosen by the lowest accuracy or the highest error, or two callbacks disagree which way a metric gets better."""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.value import Value
from ta_lint.syntax.edits import ProposedFix, set_argument
from ta_lint.syntax.tree import Node, argument, is_name

KEYWORDS = (("monitor", "metric_for_best_model", "EarlyStopping"),)

_CALLBACK = regex(r"lightning\.(pytorch\.)?callbacks\.(\w+\.)*(ModelCheckpoint|EarlyStopping)")

_KEPT = {"max": "highest", "min": "lowest"}
_BLOCKS = (cst.FunctionDef, cst.If, cst.Else, cst.IfExp, cst.For, cst.While, cst.ExceptHandler, cst.MatchCase)

_WORD = regex(r"[a-z]+[0-9]*")
_HIGHER = frozenset(
    "acc accuracy auc auprc auroc bleu dice f1 fscore iou jaccard kappa map mcc miou mrr ndcg precision psnr r2 recall "
    "reward rouge rouge1 rouge2 rougel sacrebleu ssim top1 top5".split()
)
_LOWER = frozenset(
    "bpb bpd cer eer err error fid loss lpips mae mape mse nll perplexity ppl rmse wer".split()
)
_TURNS = frozenset(
    "complement decrease decrement delta diff drop gain improvement inv inverse minus neg negated negative reduction rel relative "
    "reverse".split()
)


@dataclass(frozen=True)
class _Choice:
    """What a call says of the best model: the metric, whether higher is better, and how an argument says so."""

    metric: str
    higher: bool
    keyword: str
    codes: dict[bool, str]


def check(module: FileFacts) -> Iterator[Suspicion]:
    choices = [(call, _of_callback(module, call)) for call in _callbacks(module)]
    choices += [(call, _of_settings(module, call)) for call in module.trainers.settings]
    for call, choice in choices:
        higher = _is_better_higher(choice.metric) if choice is not None else None
        if choice is None or higher is None or higher is choice.higher:
            continue
        code = choice.codes[higher]
        kept = "highest" if choice.higher else "lowest"
        message = f"the model with the {kept} `{choice.metric}` is kept; set `{choice.keyword}={code}`"
        edit = set_argument(call, choice.keyword, code, argument(call, choice.keyword))
        yield Suspicion(call, message, fix=ProposedFix("turn it", (edit,)) if edit is not None else None)
    yield from _disagreeing(module)


def _is_better_higher(metric: str) -> bool | None:
    """Which way a metric gets better, by the words of its name; None if they do not say, or contradict each other."""
    words = set(_WORD.findall(metric.lower()))
    higher, lower = not words.isdisjoint(_HIGHER), not words.isdisjoint(_LOWER)
    if higher is lower or not words.isdisjoint(_TURNS) or metric.startswith("-"):
        return None
    return higher


def _callbacks(module: FileFacts) -> list[cst.Call]:
    return [
        call for call in module.tree.all(cst.Call) if _CALLBACK.fullmatch(module.qualified(call.func) or "")
    ]


def _of_callback(module: FileFacts, call: cst.Call) -> _Choice | None:
    """The metric and direction of a Lightning callback; None if not known, or if it keeps all or nothing."""
    is_stop = (module.qualified(call.func) or "").endswith("EarlyStopping")
    monitor = _string(module, module.flow.argument(call, "monitor", 0 if is_stop else 2))
    mode = module.flow.argument(call, "mode", 4 if is_stop else -1)
    direction = _string(module, mode) if mode.origins else "min"
    top = module.flow.argument(call, "save_top_k", -1)
    keeps_all = any(module.number(one.node) in (-1, 0) for one in top.origins)
    if monitor is None or direction not in ("min", "max") or keeps_all:
        return None
    codes = {True: '"max"', False: '"min"'}
    return _Choice(monitor, direction == "max", "mode", codes)


def _disagreeing(module: FileFacts) -> Iterator[Suspicion]:
    """The callbacks that fix a direction where one of the other kind, beside them, takes another for the same metric, or lets a condition
    choose.
    """
    watches = [one for call in _callbacks(module) if (one := _watch(module, call)) is not None]
    for one in watches:
        others = [other for other in watches if other.is_stop is not one.is_stop and one.is_beside(other)]
        if len(one.modes) == 1 and others and all(map(one.is_opposed_by, others)):
            name, (mode,) = module.code(others[0].call.func), one.modes
            message = f"this takes the {_KEPT[mode]} of a metric, `{name}` beside it may take the opposite: let both have one `mode`"
            yield Suspicion(one.call, message)


@dataclass(frozen=True)
class _Watch:
    """A callback that watches a metric whose name does not say which way it gets better."""

    call: cst.Call
    is_stop: bool
    metric: str
    """The expression that names the metric,"""
    modes: frozenset[str]
    """the directions that it may take,"""
    block: Node | None
    """and the condition or the loop around it, or the function."""

    def is_beside(self, other: "_Watch") -> bool:
        """Whether both watch one metric in one training."""
        return self.metric == other.metric and self.block is other.block

    def is_opposed_by(self, other: "_Watch") -> bool:
        """Whether another one may take the opposite; of two that are fixed, one is told of it."""
        return len(other.modes) > 1 or (self.is_stop and other.modes != self.modes)


def _watch(module: FileFacts, call: cst.Call) -> _Watch | None:
    """A callback, if it certainly takes one of two directions and there is something to choose."""
    is_stop = (module.qualified(call.func) or "").endswith("EarlyStopping")
    metric = _only(module.flow.argument(call, "monitor", 0 if is_stop else 2))
    given = module.flow.argument(call, "mode", 4 if is_stop else -1)
    modes = {("" if one.path else module.string(one.node)) or "" for one in given.origins} or {"min"}
    top = module.flow.argument(call, "save_top_k", -1)
    keeps_all = any(module.number(one.node) in (-1, 0) for one in top.origins)
    if metric is None or not modes <= _KEPT.keys() or keeps_all:
        return None
    if _is_better_higher(module.string(metric) or "") is not None:
        return None
    return _Watch(call, is_stop, module.code(metric), frozenset(modes), module.tree.enclosing(call, *_BLOCKS))


def _of_settings(module: FileFacts, call: cst.Call) -> _Choice | None:
    """The metric and direction of a transformers trainer; None if not known."""
    metric = _string(module, module.flow.argument(call, "metric_for_best_model", -1))
    if metric is None:
        return None
    greater = module.flow.argument(call, "greater_is_better", -1)
    given = _only(greater)
    if not greater.origins or is_name(given, "None"):
        higher: bool | None = not metric.endswith("loss")
    else:
        higher = module.boolean(given) if given is not None else None
    codes = {True: "True", False: "False"}
    return _Choice(metric, higher, "greater_is_better", codes) if higher is not None else None


def _only(value: Value) -> Node | None:
    """The one expression that makes a value."""
    one = value.origins[0] if len(value.origins) == 1 else None
    return one.node if one is not None and not one.path else None


def _string(module: FileFacts, value: Value) -> str | None:
    one = _only(value)
    return module.string(one) if one is not None else None
