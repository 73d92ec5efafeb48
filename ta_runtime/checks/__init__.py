"""One module per rule, named as its page: `ta102_exploding_gradient` checks TA102.

A module has one or more of these functions, each of one fact and yielding suspicions:

- `check_model(Model)`: once for each model, when it has been called, or by `Auditor.audit_static`;
- `check_optimizer(Optimizer)`: once for each optimizer at its first step, or by `Auditor.audit_init`;
- `check_static(AskedModel)`, `check_init(Optimizer)` and `check_data(Step)`: only where the user asks for it, by
  `Auditor.audit_static`, `audit_init` and `audit_data`, or `ta-runtime audit`: then also what does little harm, as notes;
- `check_trial(Step)`: at the audited steps of an `Auditor`. What each of them says is a note, if it ends after so few that
  it was a trial, and too short for the other checks of the rule;
- `check_gradients(Gradients)`: at every optimizer step that is looked at;
- `check_step(Step)`: at every audited step;
- `check_collective(Mismatch)` and `check_replicas(Divergence)`: as soon as ranks are seen to disagree;
- `check_violation(Violation)`: as soon as an invariant is seen not to hold;
- `check_flight(Flight)`: before the first step, where a preflight was asked for;
- `check_progress(Run)`: after the second step, the fourth, the eighth and so on, and at the end;
- `check_run(Run)`: at the end.

A suspicion is a `Suspicion`. If the pitfall could have shown and did not, a check may yield a `Refutation`: the run then
refutes what the source suspects. If it could not show in this run, it may yield an `Unobserved` with the reason. A check that
measured too little yields nothing.

`OF_STRUCTURE = True` beside a `check_step` says that it looks at how layers are put together, which hardly changes: it is
asked on few of the audited steps (`facts.Step.structural`).

`LEAST` is how many steps must be looked at before the checks of a module can say anything: a run says which rules it was
too short for.

Nothing lists the modules: the folder is the list.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from types import ModuleType
from typing import Any

from ta_lint.checks import module_of as shared_module
from ta_lint.checks import shared
from ta_lint.core.catalogue import rule_of
from ta_runtime.facts import Said

FACTS = (
    "model",
    "optimizer",
    "static",
    "init",
    "data",
    "trial",
    "gradients",
    "step",
    "collective",
    "replicas",
    "violation",
    "flight",
    "progress",
    "run",
)
ASKED = FACTS[2:6]
"""Those that the user asks about."""


@dataclass(frozen=True)
class Check:
    """One function of a check module: for which rule, and the fact it asks for."""

    rule: str
    fact: str
    function: Callable[[Any], Iterator[Said]]
    of_structure: bool = False
    least: int = 0


@cache
def stems() -> dict[str, str]:
    """The module name of each rule that has a check here, or one that both observers share."""
    names = (
        entry.name.removesuffix(".py") for entry in files(__name__).iterdir() if entry.name.endswith(".py")
    )
    own = {name[:5].upper(): name for name in sorted(names) if re.fullmatch(r"ta\d{3}_\w+", name)}
    return {**own, **{rule: stem for rule, stem in shared().items() if "runtime" in rule_of(rule).observers}}


def module_of(rule: str) -> ModuleType:
    """The module that checks a rule.

    Raises:
        KeyError: there is none.
    """
    return shared_module(rule) if rule in shared() else import_module(f"{__name__}.{stems()[rule]}")


def enabled(rules: frozenset[str]) -> list[Check]:
    """The checks of these rules, in order of id."""
    return [check for rule in sorted(rules & stems().keys()) for check in load(rule)]


@cache
def load(rule: str) -> list[Check]:
    """The checks of a rule.

    Raises:
        TypeError: its module has no function of those above.
    """
    module = module_of(rule)
    of_structure = getattr(module, "OF_STRUCTURE", False)
    found = [
        Check(rule, fact, function, of_structure, getattr(module, "LEAST", 0))
        for fact in FACTS
        if (function := getattr(module, f"check_{fact}", None)) is not None
    ]
    if not found:
        raise TypeError(f"{module.__name__}: none of " + ", ".join(f"check_{fact}" for fact in FACTS))
    return found
