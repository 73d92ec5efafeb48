"""What a program of a framework really does: `python framework_actions.py SCRIPT` is `real_actions.py` with what the libraries themselves call."""

import sys
from typing import Any

import real_actions
import torch.optim.optimizer as optimizers
from torch.optim import lr_scheduler


def scheduled(*_: Any, **__: Any) -> None:
    """A schedule goes on, but not as it does when it is made."""
    if sys._getframe(2).f_code.co_name != "_initial_step":
        real_actions.note("schedule")


def main() -> None:
    """Run the script. A step is told where it ends as well: the closure of an optimizer runs inside of it."""
    optimizers.register_optimizer_step_post_hook(lambda *_: real_actions.note("stepped"))
    for cls in (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau):
        real_actions.before(cls, "step", scheduled)
    real_actions.main()


if __name__ == "__main__":
    main()
