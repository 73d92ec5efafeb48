"""TA851: a training script keeps no record of its metrics."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.scripts import header
from ta_lint.facts.values.calls import called_name

# Trackers, loggers and metric files, by any of their names.
_TRACKERS = regex(
    "wandb|tensorboard|SummaryWriter|mlflow|neptune|comet_ml|clearml|swanlab|visdom|trackio|dvclive|sacred|aimstack|"
    "livelossplot|add_scalar|logger|logging|log_metric|init_trackers|writerow|to_csv|dllogger",
    re.IGNORECASE,
)

KEYWORDS = ("*backward", "step", "*parameters")

# Functions and methods that record their argument: `log(loss)`, `json.dump`, `history.to_csv`, `plt.savefig`.
_RECORDS = regex(
    r"log|log_(?!softmax|prob|normal|sigmoid|every)\w+|\w+_log|logs|\w*(record|track|write|dump|report|monitor)\w*|"
    r"savefig|savetxt|savez|summary",
    re.IGNORECASE,
)
_MATHEMATICS = regex(r"(torch|math|numpy|cmath|jax|scipy)(\.|$)")


def check(module: FileFacts) -> Iterator[Suspicion]:
    entry = module.scripts.own_entry
    if entry is None or _TRACKERS.search(module.source.text):
        return
    if not module.script or any(map(_logs, module.script)):
        return
    yield Suspicion(header(entry), "the losses are gone when this script ends: log them to a tracker")


def _logs(module: FileFacts) -> bool:
    return _TRACKERS.search(module.source.text) is not None or any(
        _records(module, call) for call in module.tree.all(cst.Call)
    )


def _records(module: FileFacts, call: cst.Call) -> bool:
    name = called_name(call) or ""
    if name == "open":
        return len(call.args) > 1
    if not call.args or _RECORDS.fullmatch(name) is None:  # `x.log()` is the logarithm
        return False
    return _MATHEMATICS.match(module.qualified(call.func) or "") is None
