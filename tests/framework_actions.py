"""What a program of a framework really does, each action in its order: `python framework_actions.py SCRIPT` prints it as JSON.

`real_actions.py` keeps what happens in lines of a script; here the lines of most actions are in a library. An action is a list: its name,
the line of the script that leads to it, and what is known of it.
"""

import json
import runpy
import sys
from types import FrameType
from typing import Any

import torch
import torch.optim.optimizer as optimizers
from real_actions import before
from torch import nn
from torch.optim import lr_scheduler

SCRIPT = sys.argv[1]
actions: list[list[Any]] = []
born: dict[int, tuple[int, str]] = {}
kept: list[Any] = []


def line() -> int:
    """The line of the script that runs now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != SCRIPT:
        frame = frame.f_back
    return 0 if frame is None else frame.f_lineno


def note(action: str, **known: Any) -> None:
    """Keep an action."""
    actions.append([action, line(), known])


def name(parameter: torch.Tensor) -> tuple[int, str]:
    """A parameter by the line that made it and the name in its module."""
    return born.get(id(parameter), (0, ""))


def registered(module: nn.Module, key: str, parameter: nn.Parameter | None) -> None:
    """A module gets a parameter."""
    if parameter is not None:
        born.setdefault(id(parameter), (line(), key))
        kept.append(parameter)


def reached(loss: torch.Tensor) -> list[tuple[int, str]]:
    """The leaves that autograd leads to."""
    found, seen, pending = set(), set(), [loss.grad_fn]
    while pending:
        node = pending.pop()
        if node is not None and node not in seen:
            seen.add(node)
            if hasattr(node, "variable"):
                found.add(name(node.variable))
            pending.extend(following for following, _ in node.next_functions)
    return sorted(found)


def held(optimizer: optimizers.Optimizer) -> list[tuple[int, str]]:
    """What an optimizer updates."""
    return sorted({name(one) for group in optimizer.param_groups for one in group["params"]})


def scheduled(*_: Any, **__: Any) -> None:
    """A schedule goes on, but not as it does when it is made."""
    if sys._getframe(2).f_code.co_name != "_initial_step":
        note("schedule")


def watch() -> None:
    """Attach what tells of actions. A step is told where it ends, as the closure of an optimizer runs inside of it."""
    nn.modules.module.register_module_parameter_registration_hook(registered)
    nn.modules.module.register_module_forward_pre_hook(
        lambda module, _: note(
            "forward", cls=type(module).__name__, training=module.training, recording=torch.is_grad_enabled()
        )
    )
    optimizers.register_optimizer_step_post_hook(lambda optimizer, *_: note("step", holds=held(optimizer)))
    before(torch.Tensor, "backward", lambda loss, *_, **__: note("backward", reaches=reached(loss)))
    before(optimizers.Optimizer, "zero_grad", lambda *_, **__: note("clear"))
    before(nn.Module, "zero_grad", lambda *_, **__: note("clear"))
    before(nn.utils, "clip_grad_norm_", lambda *_, **__: note("clip"))
    for cls in (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau):
        before(cls, "step", scheduled)
    train = nn.Module.train

    def mode(module: nn.Module, mode: bool = True) -> Any:
        if sys._getframe(1).f_code is not train.__code__:  # of each module below it, torch itself calls this
            note("train" if mode else "eval")
        return train(module, mode)

    nn.Module.train = mode  # type: ignore[method-assign, assignment]


def main() -> None:
    """Run the script."""
    torch.manual_seed(0)
    watch()
    sys.argv = [SCRIPT]
    stdout, sys.stdout = sys.stdout, sys.stderr
    status = "ended"
    try:
        runpy.run_path(SCRIPT, run_name="__main__")
    except Exception as error:  # noqa: BLE001 - what a program raises is its own
        status = f"{type(error).__name__}: {error}"
    sys.stdout = stdout
    print(json.dumps({"status": status, "actions": actions}))


if __name__ == "__main__":
    main()
