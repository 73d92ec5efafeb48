"""Whole training scripts: data, models, optimizers, and loops of steps inside of whatever Python has."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from generating.models import LEARNING, UNSURE, own_class
from generating.optimizers import optimizer, scheduler
from generating.writer import Lines, Writer, indented, renamed
from hypothesis import strategies as st

IMPORTS = ["import contextlib", "import copy", "import functools", "import itertools", "import os", "import random", "import sys",
           "from collections import OrderedDict", "from dataclasses import dataclass, field", "import torch", "import torch.nn.functional as F",
           "from torch import nn", "from torch.utils.data import DataLoader, Dataset, TensorDataset"]  # fmt: skip


@dataclass
class Scope:
    """What the steps of a program can use."""

    w: Writer
    models: list[str] = field(default_factory=list)
    optimizers: list[str] = field(default_factory=list)
    schedulers: list[str] = field(default_factory=list)
    scaler: bool = False
    teacher: bool = False
    counter: str = ""
    """The name of a number that grows with the passes."""


@st.composite
def programs(draw: Any) -> str:
    """The text of a program."""
    w = Writer(draw)
    scope = Scope(w)
    above: Lines = ["torch.manual_seed(0)", "random.seed(0)", f"FLAG = {w.pick('True', 'False')}", f"EVERY = {w.pick('2', '1', '3')}"]
    for _ in range(1 + w.number(2)):
        name = w.fresh("model")
        above.append(f"{name} = {own_class(w) if w.sometimes() else w.pick(*LEARNING)}")
        scope.models.append(name)
    above += _before_optimizers(scope)
    for _ in range(1 + w.number(1)):
        name = w.fresh("optimizer")
        above += optimizer(w, name, scope.models)
        scope.optimizers.append(name)
    if w.sometimes(3):
        name = w.fresh("scheduler")
        above.append(scheduler(w, name, w.pick(*scope.optimizers)))
        scope.schedulers.append(name)
    if w.sometimes(4):
        above.append("scaler = torch.amp.GradScaler('cpu', enabled=False)")
        scope.scaler = True
    body = _epochs(scope)
    definitions = w.definitions
    if w.sometimes(4):
        lines = [*IMPORTS, "def main():", *indented([*above[:4], *definitions, *above[4:], *body]), "if __name__ == '__main__':", "    main()"]
    else:
        lines = [*IMPORTS, *above[:4], *definitions, *above[4:], *body]
    return "\n".join(lines) + "\n"


def _before_optimizers(scope: Scope) -> Lines:
    """What happens to the models once they are made: copies, freezing, aliases, wrapping."""
    w, lines = scope.w, []
    model = w.pick(*scope.models)
    kind = w.number(7)
    if kind == 1:
        name = w.fresh("model")
        lines.append(f"{name} = copy.deepcopy({model})")
        scope.models.append(name)
    elif kind == 2:
        lines += [w.pick(f"{model}.requires_grad_(False)", f"{model}.requires_grad_(True)"), "teacher = " + model] if len(scope.models) > 1 else []
    elif kind == 3:
        lines += [f"for p in {model}.parameters():", "    p.requires_grad = False"] if len(scope.models) > 1 else []
    elif kind == 4:
        lines.append(f"alias = {model}")
        scope.models.append("alias")
    elif kind == 5:
        name = w.fresh("model")
        lines.append(f"{name} = nn.Sequential({model}, nn.Linear(4, 4))")
        scope.models.append(name)
    elif kind == 6:
        lines += ["teacher = copy.deepcopy(" + model + ")", w.pick("teacher.eval()", "teacher.requires_grad_(False)", "teacher = teacher.eval().requires_grad_(False)")]
        scope.teacher = True
    elif kind == 7:
        lines += [f"{model}.apply(lambda module: nn.init.zeros_(module.bias) if isinstance(module, nn.Linear) and module.bias is not None else None)"]
    return lines


def _epochs(scope: Scope) -> Lines:
    """The data, and the loops over it."""
    w = scope.w
    rows, data, lines = w.number(2) + 2, w.fresh("data"), []
    kind = w.number(6)
    if kind <= 1:
        lines.append(f"{data} = [(torch.randn(2, 4), torch.randn(2, 4)) for _ in range({rows})]")
    elif kind == 2:
        lines.append(f"{data} = DataLoader(TensorDataset(torch.randn({2 * rows}, 4), torch.randn({2 * rows}, 4)), batch_size=2{w.pick('', ', shuffle=True')})")
    elif kind == 3:
        name = w.fresh("Rows")
        w.define(f"class {name}(Dataset):", "    def __init__(self, count):", "        self.count = count", "    def __len__(self):", "        return self.count",
                 "    def __getitem__(self, index):", "        return torch.randn(4), torch.randn(4)")  # fmt: skip
        lines.append(f"{data} = DataLoader({name}({2 * rows}), 2)")
    elif kind == 4:
        name = w.fresh("batches")
        w.define(f"def {name}(count={rows}):", "    for _ in range(count):", "        yield torch.randn(2, 4), torch.randn(2, 4)")
        data = f"{name}()"
    elif kind == 5:
        name = w.fresh("Batches")
        w.define(f"class {name}:", "    def __iter__(self):", f"        for _ in range({rows}):", "            yield torch.randn(2, 4), torch.randn(2, 4)")
        lines.append(f"{data} = {name}()")
    else:
        lines.append(f"{data} = list(zip(torch.randn({rows}, 2, 4), torch.randn({rows}, 2, 4)))")
    scope.counter = "step"
    body = block(scope, 2 + w.number(1))
    form = w.number(8)
    if form == 0:
        loop = ["step = 0", f"for x, y in {data}:", *indented([*body, "step += 1"])]
    elif form == 1:
        loop = [f"for step, (x, y) in enumerate({data}):", *indented(body)]
    elif form == 2:
        loop = [f"for step in range({rows}):", *indented(["x, y = torch.randn(2, 4), torch.randn(2, 4)", *body])]
    elif form == 3:
        loop = ["step = 0", f"while step < {rows}:", *indented(["x, y = torch.randn(2, 4), torch.randn(2, 4)", *body, "step += 1"])]
    elif form == 4:
        loop = [f"for (x, y), step in zip({data}, range({rows + w.number(2)})):", *indented(body)]
    elif form == 5:
        loop = [f"rows = iter({data})", "step = 0", "x, y = next(rows)", *body]
    elif form == 6:
        loop = [f"for step, batch in enumerate({data}, start=1):", *indented(["x, y = batch", *body])]
    elif form == 7:
        loop = ["step = 0", "while True:", *indented(["x, y = torch.randn(2, 4), torch.randn(2, 4)", *body, "step += 1", f"if step >= {rows}:", "    break"])]
    else:
        loop = [f"for step, batch in list(enumerate({data})):", *indented(["x = batch[0]", "y = batch[1]", *body])]
    after = block(scope, 1, loops=False) if w.sometimes(3) else []
    if after:
        after = ["x, y = torch.randn(2, 4), torch.randn(2, 4)", "step = 7", *after]
    epochs = w.number(3)
    inner = [*loop, *(f"{one}.step()" for one in scope.schedulers), *(evaluation(scope) if w.sometimes(3) else [])]
    if epochs == 0:
        return [*lines, *loop, *after]
    before = [w.pick(*(f"{one}.train()" for one in scope.models))] if w.sometimes() else []
    if epochs == 1 and w.sometimes():
        return [*lines, "epoch = 0", "while epoch < 2:", *indented([*before, *inner, "epoch += 1"]), *after]
    return [*lines, f"for epoch in range({epochs}):", *indented([*before, *inner]), *after]


def block(scope: Scope, count: int, deep: int = 0, loops: bool = True) -> Lines:
    """Some steps, each perhaps inside of something."""
    lines: Lines = []
    for _ in range(1 + scope.w.number(count - 1)):
        lines += wrapped(scope, unit(scope), deep)
    return lines


def wrapped(scope: Scope, lines: Lines, deep: int) -> Lines:
    """The lines inside of a branch, a loop, a function, ..."""
    w = scope.w
    if deep >= 2 or not w.sometimes():
        return lines
    return w.pick(*WRAPPERS)(scope, lines, deep)  # type: ignore[no-any-return]


# -- steps ---------------------------------------------------------------------------------------------


def unit(scope: Scope) -> Lines:
    """One thing that a training does."""
    return scope.w.pick(step, step, step, mode, evaluation, accumulation, closure, average, freezing, two_losses)(scope)  # type: ignore[no-any-return]


def clearing(scope: Scope, optimizer: str) -> Lines:
    """Lines that clear gradients, or none."""
    model = scope.w.pick(*scope.models)
    return scope.w.pick([f"{optimizer}.zero_grad()"], [f"{optimizer}.zero_grad(set_to_none=True)"], [f"{model}.zero_grad()"], [],  # type: ignore[no-any-return]
                        [f"for p in {model}.parameters():", "    p.grad = None"],
                        ["for each in [" + ", ".join(scope.optimizers) + "]:", "    each.zero_grad()"])  # fmt: skip


def forward(scope: Scope) -> Lines:
    """Lines that compute `out` from `x`."""
    w = scope.w
    model, other = w.pick(*scope.models), w.pick(*scope.models)
    every = ", ".join(scope.models)
    choices = [
        [f"out = {model}(x)"],
        [f"out = {model}({other}(x))"],
        [f"with torch.autocast('cpu', dtype=torch.bfloat16, enabled={w.pick('False', 'FLAG')}):", f"    out = {model}(x)", "out = out.float()"],
        ["with torch.no_grad():", f"    hidden = {other}(x)", f"out = {model}(hidden)"],
        [f"out = {model}(x) + {other}(x).detach()"],
        [f"out = {model}(x) if {w.pick('FLAG', *UNSURE)} else {other}(x)"],
        [f"outs = [each(x) for each in ({every},)]", "out = sum(outs)"],
        [f"outs = {{str(index): each(x) for index, each in enumerate([{every}])}}", "out = outs['0']"],
        ["out = x", f"for each in [{every}]:", "    out = each(out)"],
        [f"out = torch.stack([each(x) for each in ({every},)]).mean(dim=0)"],
        [f"out, hidden = {model}(x), {other}(x)"],
        [f"chosen = {model} if {w.pick('FLAG', 'not FLAG', *UNSURE)} else {other}", "out = chosen(x)"],
        [f"(out := {model}(x))"],
        [f"out = functools.reduce(lambda value, each: each(value), [{every}], x)"],
        [f"out = {model}(x)", f"if {w.pick('FLAG', 'step == 0', *UNSURE)}:", f"    out = {w.pick('out.detach()', f'out + {other}(x)', 'out * 2')}"],
    ]
    return w.pick(*choices)  # type: ignore[no-any-return]


def loss(scope: Scope) -> Lines:
    """Lines that compute `loss` from `out` and `y`."""
    w = scope.w
    model = w.pick(*scope.models)
    lines = w.pick(
        ["loss = F.mse_loss(out, y)"], ["loss = (out - y).pow(2).mean()"], ["loss = nn.MSELoss()(out, y)"], ["criterion = nn.L1Loss()", "loss = criterion(out, y)"],
        ["loss = F.cross_entropy(out, y.argmax(dim=1))"], ["loss = -F.log_softmax(out, -1)[:, 0].mean()"], ["loss = torch.mean(torch.abs(out - y))"],
        ["losses = {'main': F.mse_loss(out, y), 'small': out.pow(2).sum()}", "loss = sum(losses.values())"],
        ["losses = [F.mse_loss(out, y), 0.1 * out.sum()]", "loss = torch.stack(losses).sum()"],
        ["loss = 0", "for row, wanted in zip(out, y):", "    loss = loss + (row - wanted).pow(2).sum()"],
        ["loss = torch.zeros(())", "loss += F.mse_loss(out, y)"],
    )  # fmt: skip
    if w.sometimes(4):
        lines = [*lines, w.pick(f"loss = loss + 0.01 * sum(p.pow(2).sum() for p in {model}.parameters())", f"if FLAG:\n    loss = loss + {model}(x).mean()",
                                f"loss = loss + F.mse_loss(out, {model}(x).detach())", "loss = loss * (1.0 if FLAG else 0.5)",
                                f"loss += sum(p.abs().sum() for key, p in {model}.named_parameters() if 'weight' in key)")]  # fmt: skip
    return [part for line in lines for part in line.split("\n")]


def update(scope: Scope, optimizer: str) -> Lines:
    """Lines that go from `loss` to new weights."""
    w = scope.w
    model = w.pick(*scope.models)
    scaled = scope.scaler and w.sometimes()
    backward = "scaler.scale(loss).backward()" if scaled else w.pick("loss.backward()", "(loss / 2).backward()", "loss.mean().backward()", "loss.backward(retain_graph=True)")
    lines = ["if loss.requires_grad:", f"    {backward}"] if w.sometimes(3) else [backward]
    if w.sometimes(4):
        lines.append(w.pick(f"torch.nn.utils.clip_grad_norm_({model}.parameters(), 1.0)", f"nn.utils.clip_grad_norm_(list({model}.parameters()), max_norm=1.0)"))
    step = [f"scaler.step({optimizer})", "scaler.update()"] if scaled else [f"{optimizer}.step()"]
    if w.sometimes(6):
        step = [f"if {w.pick('FLAG', 'step > 0', 'loss.item() < 100', 'torch.isfinite(loss)', 'step % 2 == 0')}:", *indented(step)]
    lines += step
    if scope.schedulers and w.sometimes(3):
        lines.append(f"{w.pick(*scope.schedulers)}.step()")
    return lines


def step(scope: Scope) -> Lines:
    """A training step."""
    optimizer = scope.w.pick(*scope.optimizers)
    clear = clearing(scope, optimizer)
    made = [*forward(scope), *loss(scope)]
    return [*made, *clear, *update(scope, optimizer)] if scope.w.sometimes(4) else [*clear, *made, *update(scope, optimizer)]


def two_losses(scope: Scope) -> Lines:
    """Two losses, one after another, and steps."""
    w = scope.w
    lines: Lines = []
    for number in range(2):
        lines += [*forward(scope), *loss(scope), f"loss{number} = loss"]
    lines += w.pick(["(loss0 + loss1).backward()"], ["loss0.backward()", "loss1.backward()"], ["total = loss0 + loss1.detach()", "total.backward()"],
                    ["for each in (loss0, loss1):", "    each.backward()"], ["torch.stack([loss0, loss1]).mean().backward()"])  # fmt: skip
    return [*lines, *(f"{one}.step()" for one in scope.optimizers), f"{w.pick(*scope.optimizers)}.zero_grad()"]


def mode(scope: Scope) -> Lines:
    """A model changes its mode."""
    w = scope.w
    model = w.pick(*scope.models)
    return w.pick([f"{model}.eval()"], [f"{model}.train()"], [f"{model}.train(FLAG)"], [f"{model}.train(step % 2 == 0)"],  # type: ignore[no-any-return]
                  [f"for each in ({', '.join(scope.models)},):", "    each.eval()"], [f"for module in {model}.modules():", "    if isinstance(module, nn.Dropout):", "        module.eval()"],
                  [f"{model}.train(not {model}.training)"], [f"for each in {model}.children():", "    each.eval()"], [f"was = {model}.training", f"{model}.eval()", f"{model}.train(was)"])  # fmt: skip


def evaluation(scope: Scope) -> Lines:
    """A look at the model that should not train it."""
    w = scope.w
    model = w.pick(*scope.models)
    again = w.pick([f"{model}.train()"], [])
    manager = w.pick("torch.no_grad()", "torch.inference_mode()", "torch.set_grad_enabled(False)", "contextlib.nullcontext()", "torch.enable_grad()",
                     "(torch.no_grad() if FLAG else contextlib.nullcontext())")  # fmt: skip
    inside = w.pick(["value = " + model + "(torch.randn(2, 4))"], ["for _ in range(2):", f"    value = {model}(torch.randn(2, 4)).sum().item()"],
                    [f"value = [{model}(torch.randn(2, 4)) for _ in range(2)]"], [f"value = sum({model}(torch.randn(2, 4)).mean() for _ in range(2))"])  # fmt: skip
    kind = w.number(4)
    if kind == 0:
        return [f"{model}.eval()", f"with {manager}:", *indented(inside), *again]
    if kind == 1:
        name = w.fresh("evaluate")
        w.define(w.pick("@torch.no_grad()", "@torch.inference_mode()", "@torch.no_grad"), f"def {name}(net):", *indented(["net.eval()", *renamed(inside, {model: "net"}), *(["net.train()"] if again else []), "return value"]))
        return [f"{name}({model})"]
    if kind == 2:
        name = w.fresh("evaluating")
        w.define("@contextlib.contextmanager", f"def {name}(net):", *indented(["was = net.training", "net.eval()", "try:", f"    with {manager}:", "        yield net", "finally:", "    net.train(was)"]))
        return [f"with {name}({model}):", *indented(inside)]
    if kind == 3:
        name = w.fresh("Evaluating")
        w.define(f"class {name}:", *indented(["def __init__(self, net):", "    self.net = net", "def __enter__(self):", "    self.was = self.net.training", "    self.net.eval()", "    return self.net",
                                              "def __exit__(self, *error):", "    self.net.train(self.was)", w.pick("    return False", "    return None")]))  # fmt: skip
        return [f"with {name}({model}) as net, {manager}:", *indented(renamed(inside, {model: "net"}))]
    return [f"{model}.eval()", "previous = torch.is_grad_enabled()", "torch.set_grad_enabled(False)", *inside, "torch.set_grad_enabled(previous)", *again]


def accumulation(scope: Scope) -> Lines:
    """A step every few passes."""
    w = scope.w
    optimizer = w.pick(*scope.optimizers)
    test = w.pick("(step + 1) % EVERY == 0", "step % 2 == 1", "not (step + 1) % EVERY", "step == 1")
    return [*forward(scope), *loss(scope), w.pick("(loss / EVERY).backward()", "loss.backward()"), f"if {test}:", *indented([f"{optimizer}.step()", f"{optimizer}.zero_grad()"])]


def closure(scope: Scope) -> Lines:
    """A step with a closure."""
    optimizer, name = scope.w.pick(*scope.optimizers), scope.w.fresh("closure")
    inside = [f"{optimizer}.zero_grad()", *forward(scope), *loss(scope), "loss.backward()", "return loss"]
    return [f"def {name}():", *indented(inside), f"{optimizer}.step({name})"]


def average(scope: Scope) -> Lines:
    """Weights that follow others, without a graph."""
    w = scope.w
    model, other = w.pick(*scope.models), "teacher" if scope.teacher else w.pick(*scope.models)
    return w.pick(["with torch.no_grad():", f"    for p, q in zip({model}.parameters(), {other}.parameters()):", "        q.data.mul_(0.9).add_(p.data.mean(), alpha=0.1)"],  # type: ignore[no-any-return]
                  [f"kept = copy.deepcopy({model}.state_dict())", f"{model}.load_state_dict(kept)"],
                  [f"kept = {{key: value.clone() for key, value in {model}.state_dict().items()}}"],
                  [f"frozen = copy.deepcopy({model})", "frozen.eval()", "with torch.no_grad():", "    wanted = frozen(x)"],
                  [f"total = sum(p.numel() for p in {model}.parameters() if p.requires_grad)"])  # fmt: skip


def freezing(scope: Scope) -> Lines:
    """A model takes no gradient for a step."""
    w = scope.w
    model = w.pick(*scope.models)
    optimizer = w.pick(*scope.optimizers)
    inside = [*forward(scope), *loss(scope), "if loss.requires_grad:", "    loss.backward()", f"{optimizer}.step()", f"{optimizer}.zero_grad()"]
    return [f"for p in {model}.parameters():", "    p.requires_grad_(False)", *inside, f"for p in {model}.parameters():", "    p.requires_grad_(True)"]


# -- what steps are inside of --------------------------------------------------------------------------

Wrapper = Callable[[Scope, Lines, int], Lines]


def if_known(scope: Scope, lines: Lines, deep: int) -> Lines:
    test = scope.w.pick("FLAG", "not FLAG", "step == 0", "step % 2 == 0", "step > 1", "EVERY > 1 and FLAG", "FLAG or EVERY == 2", "x.shape[0] == 2", f"isinstance({scope.models[0]}, nn.Module)",
                        f"hasattr({scope.models[0]}, 'weight')", f"{scope.models[0]} is not None", "step in (0, 2)", "EVERY in {1: 'a', 2: 'b'}", "0 < EVERY < 3")  # fmt: skip
    other = ["else:", *indented(wrapped(scope, unit(scope), deep + 1))] if scope.w.sometimes(3) else []
    return [f"if {test}:", *indented(wrapped(scope, lines, deep + 1)), *other]


def if_unsure(scope: Scope, lines: Lines, deep: int) -> Lines:
    other = ["else:", *indented(wrapped(scope, unit(scope), deep + 1))] if scope.w.sometimes() else []
    return [f"if {scope.w.pick(*UNSURE)}:", *indented(wrapped(scope, lines, deep + 1)), *other]


def in_loop(scope: Scope, lines: Lines, deep: int) -> Lines:
    w = scope.w
    inner = wrapped(scope, lines, deep + 1)
    if w.sometimes(3):
        at = w.pick("if again == 1:", f"if {w.pick(*UNSURE)}:", "if FLAG:")
        leave = [at, f"    {w.pick('break', 'continue')}"]
        inner = [*leave, *inner] if w.sometimes() else [*inner, *leave, *(unit(scope) if w.sometimes(3) else [])]
    head = w.pick("for again in range(2):", "for again in range(1):", "for again in range(5):", "for again in (1, 2, 3):", "for again in [0]:", "for again in range(step):", "for again, _ in enumerate('ab'):",
                  "for again in reversed(range(3)):", "for again in sorted({2, 1}):", "for again in range(0, 4, 2):", "for again in range(EVERY):")  # fmt: skip
    if w.sometimes(4):
        return ["again = 0", f"while again < {w.pick('2', '1', 'EVERY', '4')}:", *indented(["again += 1", *inner])]
    tail = ["else:", *indented(unit(scope))] if w.sometimes(6) else []
    return [head, *indented(inner), *tail]


def in_try(scope: Scope, lines: Lines, deep: int) -> Lines:
    w = scope.w
    inner = wrapped(scope, lines, deep + 1)
    kind = w.number(4)
    if kind == 0:
        return ["try:", *indented(inner), "finally:", *indented(mode(scope))]
    if kind == 1:
        return ["try:", *indented(inner), "except ZeroDivisionError:", *indented(unit(scope))]
    if kind == 2:
        return ["try:", *indented([*inner, f"if {w.pick(*UNSURE)}:", "    raise KeyError('late')"]), "except KeyError:", *indented(mode(scope))]
    if kind == 3:
        return ["try:", *indented([f"if {w.pick(*UNSURE, 'FLAG')}:", "    raise KeyError('early')", *inner]), "except (KeyError, ValueError) as error:", *indented(mode(scope)), "else:", *indented(mode(scope))]
    return ["with contextlib.suppress(KeyError):", *indented([*inner, f"if {w.pick(*UNSURE)}:", "    raise KeyError('late')", *mode(scope)])]


def in_function(scope: Scope, lines: Lines, deep: int) -> Lines:
    """A function that gets all that it needs, or some of it."""
    w = scope.w
    name, inner = w.fresh("train"), wrapped(scope, lines, deep + 1)
    given = {one: w.fresh("net") for one in scope.models if w.sometimes()}
    given |= {one: w.fresh("opt") for one in scope.optimizers if w.sometimes()}
    if w.sometimes(3):
        at = w.number(len(inner))
        while 0 < at < len(inner) and inner[at].startswith((" ", "else", "except", "finally")):
            at += 1
        inner = [*inner[:at], f"if {w.pick(*UNSURE, 'step == 0', 'FLAG')}:", f"    {w.pick('return', 'return None', 'return x, y')}", *inner[at:]]
    inner = renamed(inner, given)
    names = ["x", "y", "step", *given.values()]
    taken = [line for line in (f"global {one}" for one in [*scope.models, *scope.optimizers, "FLAG", "EVERY"]) if False]
    kind = w.number(6)
    positional = ", ".join(["x", "y", "step", *given])
    named = ", ".join(f"{new}={old}" for old, new in given.items())
    decorator: Lines = []
    if w.sometimes(5):
        wrapper = w.fresh("logged")
        w.define(f"def {wrapper}(function):", *indented([w.pick("@functools.wraps(function)", "# plain"), "def inner(*args, **kwargs):", *indented(w.pick(["return function(*args, **kwargs)"],
                 ["result = function(*args, **kwargs)", "return result"], ["for _ in range(2):", "    result = function(*args, **kwargs)", "return result"],
                 ["if FLAG:", "    return function(*args, **kwargs)"])), "return inner"]))  # fmt: skip
        decorator = [f"@{wrapper}"]
    if kind == 1:
        lines = [*decorator, f"def {name}(*, {', '.join(names)}):", *indented([*taken, *inner])]
        call = f"{name}(x=x, y=y, step=step{', ' + named if named else ''})"
    elif kind == 2:
        lines = [*decorator, f"def {name}(*args):", *indented([f"{', '.join(names)} = args", *inner])]
        call = w.pick(f"{name}({positional})", f"{name}(*({positional}))", f"{name}(x, *[y, step{', ' + ', '.join(given) if given else ''}])")
    elif kind == 3:
        lines = [*decorator, f"def {name}({', '.join(names)}):", *indented(inner)]
        call = w.pick(f"functools.partial({name}, x)({', '.join(positional.split(', ')[1:])})", f"functools.partial({name}, step=step{', ' + named if named else ''})(x, y)", f"(lambda a, b: {name}(a, b, {', '.join(['step', *given])}))(x, y)")
    elif kind == 4:
        call, lines = _by_object(scope, name, names, given, inner)
    elif kind == 5:
        options = ", ".join(f"'{new}': {old}" for new, old in [("x", "x"), ("y", "y"), ("step", "step"), *((b, a) for a, b in given.items())])
        lines = [*decorator, f"def {name}({', '.join(names)}):", *indented(inner)]
        call = f"{name}(**{{{options}}})"
    elif kind == 6:
        lines = [f"def {name}({', '.join(names)}):", *indented(["yield 0", *(line for line in inner), "yield 1"])] if not any("return x" in line for line in inner) else [f"def {name}({', '.join(names)}):", *indented(inner)]
        if lines[1].strip() == "yield 0":
            call = w.pick(f"for _ in {name}({positional}): pass", f"list({name}({positional}))", f"found = sum({name}({positional}))", f"next({name}({positional}))", f"found = [one for one in {name}({positional}) if one]")
        else:
            call = f"{name}({positional})"
    else:
        lines = [*decorator, f"def {name}({', '.join(names)}):", *indented(inner)]
        call = f"{name}({positional})"
    if w.sometimes(4):
        return [*lines, call]  # a closure, made in the loop
    w.define(*lines)
    return [call]


def _by_object(scope: Scope, name: str, names: list[str], given: dict[str, str], inner: Lines) -> tuple[str, Lines]:
    """A class whose method does the step, on what its instance keeps."""
    w = scope.w
    fields = list(given.values())
    cls = name.title()
    inner = renamed(inner, {one: f"self.{one}" for one in fields})
    method = w.pick("__call__", "fit")
    made = f"{cls}({', '.join(given)})"
    if w.sometimes(3):
        head = ["@dataclass", f"class {cls}:", *indented([*(f"{one}: object" for one in fields), "done: list = field(default_factory=list)"])]
    else:
        head = [f"class {cls}:", *indented([f"def __init__(self, {', '.join([*fields, 'note=None'])}):", *indented([*(f"self.{one} = {one}" for one in fields), "self.done = []"])])]
    lines = [*head, *indented([f"def {method}(self, x, y, step):", *indented([*inner, "self.done.append(step)"])])]
    return f"{made}{'' if method == '__call__' else '.fit'}(x, y, step)", lines


def in_match(scope: Scope, lines: Lines, deep: int) -> Lines:
    w = scope.w
    return [f"match {w.pick('EVERY', 'step', 'FLAG')}:", *indented([f"case {w.pick('1', '0', 'True')}:", *indented(unit(scope)), f"case {w.pick('2 | 3', '2', 'False')}:", *indented(lines), "case _:", *indented(mode(scope))])]


def under_manager(scope: Scope, lines: Lines, deep: int) -> Lines:
    """A context manager of the program."""
    w = scope.w
    name, inner = w.fresh("stage"), wrapped(scope, lines, deep + 1)
    before, after = mode(scope), mode(scope)
    if any("step" in line for line in [*before, *after]):
        before = after = ["pass"]
    if w.sometimes():
        w.define("@contextlib.contextmanager", f"def {name}():", *indented(w.pick([*before, "yield 'stage'", *after], [*before, "try:", "    yield", "finally:", *indented(after)])))
    else:
        w.define(f"class {name}:", *indented(["def __enter__(self):", *indented([*before, "return self"]), "def __exit__(self, kind, error, trace):", *indented(after)]))
    return [f"with {name}() as stage:", *indented(inner)]


WRAPPERS: tuple[Wrapper, ...] = (if_known, if_unsure, in_loop, in_function, in_function, in_function, in_try, in_match, under_manager)
