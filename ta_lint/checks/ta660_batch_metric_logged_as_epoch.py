"""TA660: a Lightning module logs the F1, AUC or similar of each batch, whose mean is not that of the epoch."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument, attribute_of_self, spreads

KEYWORDS = (("log", "log_dict"), ("validation_step", "test_step", "training_step"))
AROUND = (("lightning", "pytorch_lightning"), ("torchmetrics", "sklearn", "metrics"))

_EVALUATING = ("validation_step", "test_step")

# Metrics whose value for a whole is not the mean over its parts, as torchmetrics classes and as functions.
_AVERAGED = r"(F1|FBeta|Precision|Recall|Specificity|Dice|JaccardIndex)"
_ALWAYS = r"(AUROC|ROC|AveragePrecision|CohenKappa|MatthewsCorrCoef|CalibrationError)"
_TASK = r"(Binary|Multiclass|Multilabel)?"
_OF_CLASSES = regex(
    rf"torchmetrics\.(\w+\.)*({_TASK}({_ALWAYS}|{_AVERAGED}(Score)?)|(R2Score|PearsonCorrCoef|SpearmanCorrCoef|"
    rf"KendallRankCorrCoef|ConcordanceCorrCoef|ExplainedVariance|MeanAveragePrecision))"
)
_FUNCTIONS = regex(
    r"torchmetrics\.functional\.(\w+\.)*((binary|multiclass|multilabel)_)?(auroc|average_precision|cohen_kappa|"
    r"matthews_corrcoef|f1_score|fbeta_score|precision|recall|specificity|jaccard_index|r2_score|pearson_corrcoef|"
    r"spearman_corrcoef|explained_variance)|"
    r"sklearn\.metrics\.(\w+\.)*(f1_score|fbeta_score|precision_score|recall_score|roc_auc_score|average_precision_score|"
    r"r2_score|cohen_kappa_score|matthews_corrcoef|balanced_accuracy_score|jaccard_score|explained_variance_score)"
)
_COLLECTIONS = regex(r"torchmetrics\.(\w+\.)*MetricCollection|torch\.nn\.Module(Dict|List)")
_MAY_BE_MICRO = regex(r"(f1|fbeta|precision|recall|specificity|dice|jaccard)")
_SAME_VALUE = frozenset("clone cpu detach float item mean to".split())


def check(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.lightning.modules:
        logged: dict[cst.Call, Suspicion] = {}
        for name in (*_EVALUATING, "training_step"):
            hook = module.lightning.hook(klass, name)
            for function in module.lightning.reached(hook) if hook is not None else ():
                for call in module.tree.own(function, cst.Call):
                    found = _logged(module, call, name in _EVALUATING)
                    if found is not None and module.is_here(call):
                        logged.setdefault(call, found)
        yield from logged.values()


def _logged(module: FileFacts, call: cst.Call, is_evaluation: bool) -> Suspicion | None:
    """The problem of a call that logs, if its hook logs by epoch by default."""
    name = attribute_of_self(call.func)
    if name not in ("log", "log_dict") or spreads(call) or argument(call, "reduce_fx") is not None:
        return None
    by_epoch = argument(call, "on_epoch")
    if (module.boolean(by_epoch) if by_epoch is not None else is_evaluation) is not True:
        return None
    given = argument(call, "value", 1) if name == "log" else argument(call, "dictionary", 0)
    for value in _values(module, given) if given is not None else ():
        if (metric := _metric(module, value)) is not None:
            message = f"the mean of `{metric}` over batches is wrong for the epoch: log the metric object"
            return Suspicion(call, message, _related(module, value, call))
    return None


def _related(module: FileFacts, value: Node, call: cst.Call) -> tuple[tuple[Node, str], ...]:
    is_apart = module.is_here(value) and not module.tree.contains(call, value)
    return ((value, "computed from one batch here"),) if is_apart else ()


def _values(module: FileFacts, given: Node) -> Iterator[Node]:
    """The logged values: a value, or those of a dictionary, also what is put into it later."""
    for path in ((), (None,)):
        yield from (one.node for one in module.flow.of(given, path).origins if not one.path)


def _metric(module: FileFacts, value: Node) -> str | None:
    """The metric of one batch that a value certainly is, by its name, if its mean over batches means something else."""
    while (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Attribute)
        and called_name(value) in _SAME_VALUE
    ):
        origins = module.flow.of(value.func.value).origins
        if len(origins) != 1 or origins[0].node is value:
            return None
        value = origins[0].node
    if not isinstance(value, cst.Call):
        return None
    called = module.qualified(value.func)
    if called is not None:
        return (
            _last(called) if _FUNCTIONS.fullmatch(called) and not _is_micro(module, called, value) else None
        )
    for made in _objects(module, value.func):
        metric = module.qualified(made.func) or ""
        if _OF_CLASSES.fullmatch(metric) and not _is_micro(module, metric, made):
            return _last(metric)
    return None


def _objects(module: FileFacts, called: Node) -> Iterator[cst.Call]:
    """The calls that make a metric object, or those in a collection of them."""
    for origin in module.flow.of(called).origins:
        node: Node | None = origin.node
        if isinstance(node, cst.For):  # over a collection
            container: Node = node.iter
            if isinstance(container, cst.Call) and called_name(container) in ("items", "values"):
                container = getattr(container.func, "value", container)
            node = module.kinds.construction(container)
        if isinstance(node, cst.Call):
            is_collection = _COLLECTIONS.fullmatch(module.qualified(node.func) or "") is not None
            yield from module.tree.within(node, cst.Call) if is_collection else [node]


def _is_micro(module: FileFacts, metric: str, made: cst.Call) -> bool:
    """Whether a metric may weight all samples equally, the default for several classes."""
    name = _last(metric).lower()
    if not _MAY_BE_MICRO.search(name) or name.startswith("binary") or metric.startswith("sklearn."):
        return False
    average = argument(made, "average")
    if average is not None:
        return module.string(average) not in ("macro", "weighted")
    task = argument(made, "task")
    is_binary = task is not None and module.string(task) in ("binary", "multilabel")
    return not is_binary and not name.startswith("multi")


def _last(name: str) -> str:
    return name.rpartition(".")[2]
