"""What programs really do, under torch's own hooks: `python real_actions.py JOBS < LINES`, with a line `SCRIPT<tab>RESULT` for each.

One process loads torch, and forks for each script. RESULT becomes JSON: how the run ended, what it did, what followed what, and what its
modules gave. A place is the line of the script; what happens in another file of the program has the line 0. With 0 JOBS, it runs each
script as soon as it gets the line, and prints a line when the result is there; `names` then has the plain values that the script leaves at
its top level.
"""

import ast
import gc
import json
import os
import runpy
import signal
import sys
import sysconfig
import tempfile
import time
import warnings
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed.tensor
import torch.optim.optimizer as optimizers
import torch.utils.data
from torch import nn

MOST = 20_000
"""Actions after which a run is cut off: it repeats itself."""
SECONDS = 12
"""Of the processor, after which it is cut off as well."""
PATIENCE = 90
"""Seconds after which a run is given up."""
LIBRARIES = tuple(
    os.path.realpath(one) + os.sep
    for one in (
        sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), Path(torch.__file__).parents[1],
        Path(__file__).parents[1] / "ta_lint", Path(__file__).parents[1] / "ta_runtime",
    )
)  # fmt: skip
INSTALLED = str(Path(torch.__file__).parents[1]) + os.sep
TORCH = str(Path(torch.__file__).parent)
Name = tuple[int, str]


class Enough(BaseException):
    """The run has shown what it does."""


class Log:
    """What one script does, each thing once."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.count = 0
        self.actions: dict[tuple[str, int, tuple[tuple[str, Any], ...]], None] = {}
        self.follows: dict[tuple[tuple[str, int], tuple[str, int]], None] = {}
        self.outputs: dict[tuple[int, str, tuple[int, ...], str], None] = {}
        self.last = ("start", 0)
        self.born: dict[int, Name] = {}
        self.kept: list[Any] = []
        self.where: dict[str, bool] = {}

    def line(self) -> int:
        """The line of the program's code that runs now, 0 if it is in another file than the script."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not (
            self.is_ours(frame.f_code.co_filename) and frame.f_code.co_name != "__torch_function__"
        ):
            frame = frame.f_back
        return 0 if frame is None or frame.f_code.co_filename != self.script else frame.f_lineno

    def in_sight(self) -> bool:
        """Whether the program's code, or torch for it, does this, and not another library."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not self.is_ours(frame.f_code.co_filename):
            file = frame.f_code.co_filename
            if file != __file__ and not file.startswith(("<", TORCH)):
                return False
            frame = frame.f_back
        return True

    def is_ours(self, file: str) -> bool:
        """Whether a file is one of the program."""
        known = self.where.get(file)
        if known is None:
            known = self.where[file] = (
                not file.startswith("<")
                and file != __file__
                and not os.path.realpath(file).startswith(LIBRARIES)
            )
        return known

    def note(self, action: str, **known: Any) -> None:
        """Keep an action."""
        line = self.line()
        if line:
            self.actions[action, line, tuple(known.items())] = None
            if self.last != (action, line):
                self.follows[self.last, (action, line)] = None
                self.last = action, line
        self.count += 1
        if self.count > MOST:
            raise Enough

    def name(self, parameter: torch.Tensor) -> Name:
        """A parameter by the line that made it and the name in its module."""
        return self.born.get(id(parameter), (0, ""))

    def registered(self, module: nn.Module, key: str, parameter: nn.Parameter | None) -> None:
        """A module gets a parameter."""
        if parameter is not None:
            self.born.setdefault(id(parameter), (self.line(), key))
            self.kept.append(parameter)

    def reached(self, loss: torch.Tensor) -> tuple[Name, ...]:
        """The leaves that autograd leads to."""
        found, seen, pending = set(), set(), [loss.grad_fn]
        while pending:
            node = pending.pop()
            if node is not None and node not in seen:
                seen.add(node)
                if hasattr(node, "variable"):
                    found.add(self.name(node.variable))
                pending.extend(following for following, _ in node.next_functions)
        if loss.is_leaf and loss.requires_grad:
            found.add(self.name(loss))
        return tuple(sorted(found))

    def called(self, module: nn.Module, inputs: Any) -> None:
        """A module is called."""
        if self.in_sight():
            self.note(
                "forward",
                cls=type(module).__name__,
                training=module.training,
                recording=torch.is_grad_enabled(),
            )

    def gave(self, module: nn.Module, inputs: Any, output: Any) -> None:
        """The output of a module."""
        line = self.line()
        if line and isinstance(output, torch.Tensor) and self.in_sight():
            with suppress(RuntimeError):  # a nested tensor has no sizes
                self.outputs[line, type(module).__name__, tuple(output.shape), str(output.dtype)] = None


def before(owner: Any, method: str, tell: Any) -> None:
    """Tell of each call of a method."""
    original = getattr(owner, method)

    def told(*args: Any, **kwargs: Any) -> Any:
        tell(*args, **kwargs)
        return original(*args, **kwargs)

    setattr(owner, method, told)


def watch(log: Log) -> None:
    """Attach what tells of actions."""
    nn.modules.module.register_module_parameter_registration_hook(log.registered)
    nn.modules.module.register_module_forward_pre_hook(log.called)
    nn.modules.module.register_module_forward_hook(log.gave)
    optimizers.register_optimizer_step_post_hook(
        lambda optimizer, *_: log.note(
            "step",
            holds=tuple(sorted({log.name(one) for group in optimizer.param_groups for one in group["params"]})),
        )
    )  # fmt: skip
    copied: Any = nn.Parameter.__deepcopy__

    def copy(parameter: nn.Parameter, memo: Any) -> Any:
        made = copied(parameter, memo)
        log.born.setdefault(id(made), log.name(parameter))
        log.kept.append(made)
        return made

    setattr(nn.Parameter, "__deepcopy__", copy)  # noqa: B010 - its type is that of a tensor's
    apply: Any = nn.Module._apply

    def moved(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        names = [(one._parameters, key, log.name(value)) for one in module.modules() for key, value in one._parameters.items() if value is not None]  # fmt: skip
        result = apply(module, *args, **kwargs)
        for owner, key, name in names:
            log.born.setdefault(id(owner.get(key)), name)
            log.kept.append(owner.get(key))
        return result

    setattr(nn.Module, "_apply", moved)  # noqa: B010 - likewise

    def backward(tensors: Any, *_: Any, **__: Any) -> None:
        for loss in (tensors,) if isinstance(tensors, torch.Tensor) else tensors:
            log.note("backward", reaches=log.reached(loss))

    before(torch.autograd, "backward", backward)
    before(optimizers.Optimizer, "zero_grad", lambda *_, **__: log.note("clear"))
    before(nn.Module, "zero_grad", lambda *_, **__: log.note("clear"))
    for clip in ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_"):
        before(nn.utils, clip, lambda *_, **__: log.note("clip"))
    train = nn.Module.train

    def mode(module: nn.Module, mode: bool = True) -> Any:
        if sys._getframe(1).f_code is not train.__code__:  # of each module below it, torch itself calls this
            log.note("train" if mode else "eval")
        return train(module, mode)

    nn.Module.train = mode  # type: ignore[method-assign, assignment]


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


def run(script: str, result: str, *, named: bool = False) -> None:
    """Run a script and write down what it did."""
    log = Log(script)
    status = "ended"
    names: dict[str, Any] = {}

    def enough(*_: Any) -> None:
        raise Enough

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        watch(log)
        torch.manual_seed(0)
        signal.signal(signal.SIGVTALRM, enough)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        sys.argv = [script]
        sys.path[0] = str(Path(script).parent)
        try:
            names = runpy.run_path(script, run_name="__main__")
        except Enough:
            status = "cut"
        except SystemExit as error:
            status = "ended" if error.code in (None, 0) else f"SystemExit: {error.code}"
        except BaseException as error:  # noqa: BLE001 - what a program raises is its own
            status = f"{type(error).__name__}: {error}"
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        os.chdir("/")
    done = {
        "status": status,
        "actions": [[action, line, dict(known)] for action, line, known in log.actions],
        "follows": list(log.follows),
        "outputs": list(log.outputs),
        "names": {name: plain(value) for name, value in names.items()} if named else {},
    }
    Path(f"{result}.part").write_text(json.dumps(done), "utf-8")
    Path(f"{result}.part").replace(result)


def start(script: str, result: str, *, named: bool = False) -> int:
    """Run a script in a fork, and return the fork's number."""
    child = os.fork()
    if child == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        try:
            run(script, result, named=named)
        finally:
            os._exit(0)
    return child


def serve() -> None:
    """Run each script of standard input when it comes."""
    for line in sys.stdin:
        os.waitpid(start(*line.rstrip("\n").split("\t"), named=True), 0)
        print(flush=True)


def imported(script: str) -> list[str]:
    """The statements at the top of a script that import installed libraries other than torch."""
    found = []
    for statement in ast.parse(Path(script).read_bytes()).body:
        if isinstance(statement, ast.Import | ast.ImportFrom) and not getattr(statement, "level", 0):
            name = getattr(statement, "module", None) or statement.names[0].name
            library = find_spec(name.partition(".")[0])
            if (
                library is not None
                and (library.origin or "").startswith(INSTALLED)
                and library.name != "torch"
            ):
                found.append(ast.unparse(statement))
    return found


def batch() -> None:
    """Run all scripts of standard input, a few at a time.

    What a script imports of libraries, those after it find loaded: first come all that import none.
    """
    lines = [line.rstrip("\n").split("\t") for line in sys.stdin]
    imports = {script: imported(script) for script, _ in lines}
    waiting = sorted(lines, key=lambda line: imports[line[0]], reverse=True)
    running: dict[int, float] = {}
    while waiting or running:
        while waiting and len(running) < int(sys.argv[1]):
            script, result = waiting.pop()
            for statement in imports[script]:
                with suppress(Exception):  # it is the script's own
                    exec(statement, {})  # noqa: S102 - the fork would
            running[start(script, result)] = time.monotonic()
        time.sleep(0.02)
        for child, started in list(running.items()):
            ended = os.waitpid(child, os.WNOHANG)[0]
            if not ended and time.monotonic() - started < PATIENCE:
                continue
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # and what it has started
            if not ended:
                os.waitpid(child, 0)
            del running[child]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for lazily in ("torch._dynamo", "torch.utils.checkpoint", "torch.nn.utils.parametrizations"):
        import_module(lazily)  # the first optimizer of each fork would load it otherwise
    gc.collect()
    gc.freeze()
    if sys.argv[1] == "0":
        serve()
    else:
        batch()
