"""What a training does: steps, modes, a look at the model, accumulation, averages."""

from dataclasses import dataclass, field

from generating.models import UNSURE
from generating.writer import Lines, Writer, indented, renamed


@dataclass
class Scope:
    """What the steps of a program can use."""

    w: Writer
    models: list[str] = field(default_factory=list)
    optimizers: list[str] = field(default_factory=list)
    schedulers: list[str] = field(default_factory=list)
    scaler: bool = False
    teacher: bool = False


def unit(scope: Scope) -> Lines:
    """One thing that a training does."""
    kinds = (step, step, step, mode, evaluation, accumulation, closure, average, freezing, two_losses)
    return kinds[scope.w.number(len(kinds) - 1)](scope)


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
        [
            f"with torch.autocast('cpu', dtype=torch.bfloat16, enabled={w.pick('False', 'FLAG')}):",
            f"    out = {model}(x)",
            "out = out.float()",
        ],
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
        [
            f"out = {model}(x)",
            f"if {w.pick('FLAG', 'step == 0', *UNSURE)}:",
            f"    out = {w.pick('out.detach()', f'out + {other}(x)', 'out * 2')}",
        ],
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
    backward = (
        "scaler.scale(loss).backward()"
        if scaled
        else w.pick(
            "loss.backward()",
            "(loss / 2).backward()",
            "loss.mean().backward()",
            "loss.backward(retain_graph=True)",
        )
    )
    lines = ["if loss.requires_grad:", f"    {backward}"] if w.sometimes(3) else [backward]
    if w.sometimes(4):
        lines.append(
            w.pick(
                f"torch.nn.utils.clip_grad_norm_({model}.parameters(), 1.0)",
                f"nn.utils.clip_grad_norm_(list({model}.parameters()), max_norm=1.0)",
            )
        )
    step = [f"scaler.step({optimizer})", "scaler.update()"] if scaled else [f"{optimizer}.step()"]
    if w.sometimes(6):
        step = [
            f"if {w.pick('FLAG', 'step > 0', 'loss.item() < 100', 'torch.isfinite(loss)', 'step % 2 == 0')}:",
            *indented(step),
        ]
    lines += step
    if scope.schedulers and w.sometimes(3):
        lines.append(f"{w.pick(*scope.schedulers)}.step()")
    return lines


def step(scope: Scope) -> Lines:
    """A training step."""
    optimizer = scope.w.pick(*scope.optimizers)
    clear = clearing(scope, optimizer)
    made = [*forward(scope), *loss(scope)]
    return (
        [*made, *clear, *update(scope, optimizer)]
        if scope.w.sometimes(4)
        else [*clear, *made, *update(scope, optimizer)]
    )


def two_losses(scope: Scope) -> Lines:
    """Two losses, one after another, and steps."""
    w = scope.w
    lines: Lines = []
    for number in range(2):
        lines += [*forward(scope), *loss(scope), f"loss{number} = loss"]
    lines += w.pick(["(loss0 + loss1).backward()"], ["loss0.backward()", "loss1.backward()"], ["total = loss0 + loss1.detach()", "total.backward()"],
                    ["for each in (loss0, loss1):", "    each.backward()"], ["torch.stack([loss0, loss1]).mean().backward()"])  # fmt: skip
    return [
        *lines,
        *(f"{one}.step()" for one in scope.optimizers),
        f"{w.pick(*scope.optimizers)}.zero_grad()",
    ]


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
        w.define(
            w.pick("@torch.no_grad()", "@torch.inference_mode()", "@torch.no_grad"),
            f"def {name}(net):",
            *indented(
                [
                    "net.eval()",
                    *renamed(inside, {model: "net"}),
                    *(["net.train()"] if again else []),
                    "return value",
                ]
            ),
        )
        return [f"{name}({model})"]
    if kind == 2:
        name = w.fresh("evaluating")
        w.define(
            "@contextlib.contextmanager",
            f"def {name}(net):",
            *indented(
                [
                    "was = net.training",
                    "net.eval()",
                    "try:",
                    f"    with {manager}:",
                    "        yield net",
                    "finally:",
                    "    net.train(was)",
                ]
            ),
        )
        return [f"with {name}({model}):", *indented(inside)]
    if kind == 3:
        name = w.fresh("Evaluating")
        w.define(f"class {name}:", *indented(["def __init__(self, net):", "    self.net = net", "def __enter__(self):", "    self.was = self.net.training", "    self.net.eval()", "    return self.net",
                                              "def __exit__(self, *error):", "    self.net.train(self.was)", w.pick("    return False", "    return None")]))  # fmt: skip
        return [f"with {name}({model}) as net, {manager}:", *indented(renamed(inside, {model: "net"}))]
    return [
        f"{model}.eval()",
        "previous = torch.is_grad_enabled()",
        "torch.set_grad_enabled(False)",
        *inside,
        "torch.set_grad_enabled(previous)",
        *again,
    ]


def accumulation(scope: Scope) -> Lines:
    """A step every few passes."""
    w = scope.w
    optimizer = w.pick(*scope.optimizers)
    test = w.pick("(step + 1) % EVERY == 0", "step % 2 == 1", "not (step + 1) % EVERY", "step == 1")
    return [
        *forward(scope),
        *loss(scope),
        w.pick("(loss / EVERY).backward()", "loss.backward()"),
        f"if {test}:",
        *indented([f"{optimizer}.step()", f"{optimizer}.zero_grad()"]),
    ]


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
    inside = [
        *forward(scope),
        *loss(scope),
        "if loss.requires_grad:",
        "    loss.backward()",
        f"{optimizer}.step()",
        f"{optimizer}.zero_grad()",
    ]
    return [
        f"for p in {model}.parameters():",
        "    p.requires_grad_(False)",
        *inside,
        f"for p in {model}.parameters():",
        "    p.requires_grad_(True)",
    ]
