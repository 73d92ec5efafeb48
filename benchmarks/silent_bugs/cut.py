"""Runs a script until its optimizers have made 40 steps."""

import runpy
import sys
from itertools import count
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

STEPS = 40


def main(script: str) -> None:
    steps = count(1)

    def ended(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if next(steps) == STEPS:
            raise SystemExit

    register_optimizer_step_post_hook(ended)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
