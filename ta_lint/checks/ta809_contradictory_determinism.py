"""TA809: cuDNN is set both to benchmark algorithms and to be deterministic."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import Node, argument

KEYWORDS = ("benchmark", ("deterministic", "use_deterministic_algorithms"))

_BENCHMARK = "torch.backends.cudnn.benchmark"
_DETERMINISTIC = "torch.backends.cudnn.deterministic"


def check(module: FileFacts) -> Iterator[Suspicion]:
    benchmarks = _settings(_BENCHMARK, module)
    exact = _settings(_DETERMINISTIC, module)
    for call in module.calls_to("torch.use_deterministic_algorithms"):
        mode = argument(call, "mode", 0)
        exact.append((call, module.boolean(mode) if mode is not None else None))
    for setting, value in benchmarks:
        if value is not True:
            continue
        against = next((other for other, on in exact if on is True and _meet(setting, other, module)), None)
        if against is not None and not _is_undone(setting, against, benchmarks, exact, module):
            yield Suspicion(
                setting,
                "`cudnn.benchmark` chooses algorithms by speed, not determinism: set it to `False`",
                related=((against, "deterministic algorithms are switched on here"),),
            )


def _settings(qualified: str, module: FileFacts) -> list[tuple[Node, bool | None]]:
    """The assignments to a flag of torch, with their values."""
    return [
        (statement, module.boolean(statement.value))
        for statement in module.tree.all(cst.Assign)
        if any(module.qualified(item.target) == qualified for item in statement.targets)
    ]


def _meet(one: Node, other: Node, module: FileFacts) -> bool:
    """Whether two statements can run in the same run: in one function, and not in exclusive branches."""
    tree = module.tree
    return tree.home(one) is tree.home(other) and not (tree.apart(one, other) or tree.apart(other, one))


def _is_undone(
    setting: Node,
    against: Node,
    benchmarks: list[tuple[Node, bool | None]],
    exact: list[tuple[Node, bool | None]],
    module: FileFacts,
) -> bool:
    """Whether the function also sets one of the two to something else, before or after."""
    home = module.tree.home(setting)
    return any(
        value is not True and module.tree.home(other) is home
        for other, value in [*benchmarks, *exact]
        if other is not setting and other is not against
    )
