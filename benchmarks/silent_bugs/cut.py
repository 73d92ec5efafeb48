"""Runs a script as a run of 40 optimizer steps, as `max_steps=40` does: its training ends early, and the script goes on.

Each loop in which an optimizer stepped ends, once 40 steps are made, where its next pass would begin; what stands after it is
run: evaluation, saving, the end of the script. A script that would make another step ends there. With `--kill` it ends in the
40th step itself, as if it were killed, and nothing comes after.
"""

import ast
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

STEPS = 40
_MADE, _OVER = "_steps_made", "_training_is_over"


class _EndedLoops(ast.NodeTransformer):
    """Each loop asks at the start of a pass whether it is over. Lines stay where they are."""

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        return self._ended(node)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        return self._ended(node)

    def _ended(self, node: ast.For | ast.While) -> list[ast.stmt]:
        self.generic_visit(node)
        before = f"_steps_before_{node.lineno}_{node.col_offset}"
        noted, asked = ast.parse(f"{before} = {_MADE}()\nif {_OVER}({before}): break").body
        node.body.insert(0, asked)
        for made in (noted, asked):
            for each in ast.walk(made):
                ast.copy_location(each, node)
        return [noted, node]


def main(script: str, *, kills: bool) -> None:
    made = 0

    def is_over(before: int) -> bool:
        return made >= STEPS and made > before

    def end(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if made >= STEPS:
            raise SystemExit

    def count(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        nonlocal made
        made += 1
        if kills:
            end(optimizer, args, kwargs)

    register_optimizer_step_pre_hook(end)
    register_optimizer_step_post_hook(count)
    tree = ast.parse(Path(script).read_text(encoding="utf-8"))
    ran = ModuleType("__main__")
    ran.__dict__.update({"__file__": script, _MADE: lambda: made, _OVER: is_over})
    sys.modules["__main__"] = ran
    sys.argv = [script]
    exec(compile(tree if kills else _EndedLoops().visit(tree), script, "exec"), ran.__dict__)  # noqa: S102 - a script of ours


if __name__ == "__main__":
    main(sys.argv[-1], kills="--kill" in sys.argv[1:])
