"""What a program really does: `python real_actions.py SCRIPT` runs it under torch's own hooks and prints its actions as JSON.

An action is a list: its name, the line of the script that it happens in, and what is known of it. `names` are the plain values that the
script leaves at its top level. Without an argument, it reads scripts from its input, a line each, and runs each in a fork of its own, so that
torch is loaded once.
"""

import gc
import json
import os
import runpy
import sys
from importlib import import_module
from types import FrameType
from typing import Any

import torch
import torch.optim.optimizer as optimizers
from torch import nn

SCRIPT = ""
MOST = 4_000
"""Actions after which a run is cut off: it repeats itself."""
actions: list[list[Any]] = []
born: dict[int, tuple[int, str]] = {}
kept: list[Any] = []


class Enough(BaseException):
    """The run has shown what it does."""


def line() -> int:
    """The line of the script that runs now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != SCRIPT:
        frame = frame.f_back
    return 0 if frame is None else frame.f_lineno


def note(action: str, **known: Any) -> None:
    """Keep an action."""
    actions.append([action, line(), known])
    if len(actions) > MOST:
        raise Enough


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
    if loss.is_leaf and loss.requires_grad:
        found.add(name(loss))
    return sorted(found)


def before(owner: Any, method: str, tell: Any) -> None:
    """Tell of each call of a method."""
    original = getattr(owner, method)

    def told(*args: Any, **kwargs: Any) -> Any:
        tell(*args, **kwargs)
        return original(*args, **kwargs)

    setattr(owner, method, told)


def plain(value: Any) -> Any:
    """A value as JSON has it, None for what JSON has not."""
    if value is None or isinstance(value, bool | int | float | str):
        return ["constant", repr(value)]
    if isinstance(value, list | tuple):
        return ["sequence", [plain(one) for one in value]]
    if isinstance(value, dict):
        return ["table", [[repr(key), plain(one)] for key, one in value.items()]]
    if isinstance(value, nn.Module):
        return ["module", type(value).__name__, value.training, len(list(value.parameters()))]
    if isinstance(value, torch.Tensor):
        return ["tensor", value.requires_grad, list(value.shape)]
    return None


def observed(script: str) -> dict[str, Any]:
    """Run a script; this process can run no other after it."""
    global SCRIPT
    SCRIPT = script
    names: dict[str, Any] = {}
    torch.manual_seed(0)
    nn.modules.module.register_module_parameter_registration_hook(registered)
    nn.modules.module.register_module_forward_pre_hook(
        lambda module, _: note(
            "forward", cls=type(module).__name__, training=module.training, recording=torch.is_grad_enabled()
        )
    )
    optimizers.register_optimizer_step_pre_hook(
        lambda optimizer, *_: note(
            "step", holds=sorted({name(one) for group in optimizer.param_groups for one in group["params"]})
        )
    )
    copied: Any = nn.Parameter.__deepcopy__

    def copy(parameter: nn.Parameter, memo: Any) -> Any:
        made = copied(parameter, memo)
        born.setdefault(id(made), name(parameter))
        return made

    setattr(nn.Parameter, "__deepcopy__", copy)  # noqa: B010 - its type is that of a tensor's
    before(torch.Tensor, "backward", lambda loss, *_, **__: note("backward", reaches=reached(loss)))
    before(optimizers.Optimizer, "zero_grad", lambda *_, **__: note("clear"))
    before(nn.Module, "zero_grad", lambda *_, **__: note("clear"))
    modes: list[Any] = []
    train = nn.Module.train

    def mode(module: nn.Module, mode: bool = True) -> Any:
        if not modes:
            note("train" if mode else "eval", cls=type(module).__name__)
        modes.append(module)
        try:
            return train(module, mode)
        finally:
            modes.pop()

    nn.Module.train = mode  # type: ignore[method-assign, assignment]
    before(nn.utils, "clip_grad_norm_", lambda *_, **__: note("clip"))
    status = "ended"
    sys.argv = [SCRIPT]
    stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        names = runpy.run_path(SCRIPT, run_name="__main__")
    except Enough:
        status = "cut"
    except SystemExit:
        pass
    except Exception as error:  # noqa: BLE001 - a program that fails is left out
        status = f"{type(error).__name__}: {error}"
    sys.stdout = stdout
    return {
        "status": status,
        "actions": actions,
        "names": {name: plain(value) for name, value in names.items()},
    }


def serve() -> None:
    """Answer each line of the input with a line of JSON."""
    gc.freeze()
    for lazily in ("torch._dynamo", "torch.utils.checkpoint", "torch.nn.utils.parametrizations"):
        import_module(lazily)  # the first optimizer of each fork would load it otherwise
    for text in sys.stdin:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            print(json.dumps(observed(text.strip())), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        serve()
    else:
        print(json.dumps(observed(sys.argv[1])))
