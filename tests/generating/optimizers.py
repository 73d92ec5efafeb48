"""Optimizers and schedulers over the parameters of models."""

from generating.writer import Lines, Writer

MAKERS = ("torch.optim.SGD({}, lr=0.01)", "torch.optim.Adam({}, lr=1e-3)", "torch.optim.AdamW({}, 1e-3, weight_decay=0.01)",
          "torch.optim.SGD({}, 0.01, momentum=0.9)", "torch.optim.RMSprop(params={}, lr=0.001)")  # fmt: skip


def optimizer(w: Writer, name: str, models: list[str]) -> Lines:
    """Lines that make an optimizer of some of these models."""
    model, other = w.pick(*models), w.pick(*models)
    lines: Lines = []
    kind = w.number(14)
    given = f"{model}.parameters()"
    if kind == 1:
        given = f"list({model}.parameters())" + (f" + list({other}.parameters())" if other != model else "")
    elif kind == 2 and other != model:
        given = f"itertools.chain({model}.parameters(), {other}.parameters())"
    elif kind == 3 and other != model:
        given = f"[{{'params': {model}.parameters()}}, {{'params': {other}.parameters(), 'lr': 0.1}}]"
    elif kind == 4:
        given = w.pick(f"[p for p in {model}.parameters() if p.requires_grad]", f"filter(lambda p: p.requires_grad, {model}.parameters())",
                       f"(p for p in {model}.parameters() if p.requires_grad)")  # fmt: skip
    elif kind == 5:
        given = f"[p for one in ({', '.join(dict.fromkeys([model, other]))},) for p in one.parameters()]"
    elif kind == 6:
        lines += ["decay, plain = [], []", f"for key, p in {model}.named_parameters():", f"    ({w.pick('plain if p.ndim == 1 else decay', 'plain if key.endswith(chr(98)) else decay')}).append(p)"]
        given = "[{'params': decay, 'weight_decay': 0.1}, {'params': plain, 'weight_decay': 0.0}]"
    elif kind == 7:
        lines += ["chosen = []", f"for key, p in {model}.named_parameters():", "    if 'bias' in key:", "        continue", "    chosen.append(p)"]
        given = "chosen"
    elif kind == 8:
        lines += [f"chosen = {{key: p for key, p in {model}.named_parameters()}}"]
        given = "chosen.values()"
    elif kind == 9 and other != model:
        lines += [f"chosen = []", f"for one in [{model}, {other}]:", "    chosen.extend(one.parameters())"]
        given = "chosen"
    elif kind == 10:
        given = f"{model}.named_parameters()"
    elif kind == 11:
        lines += ["chosen = set()", f"for one in [{model}, {other}]:", "    chosen |= set(one.parameters())"]
        given = "list(chosen)"
    elif kind == 12:
        given = f"[*{model}.parameters()]" + w.pick("", "[:1]", "[-1:]", "[1:]")
    elif kind == 13:
        lines += [f"first, *chosen = {model}.parameters()"]
        given = "[first]"
    made = w.pick(*MAKERS).format(given)
    how = w.number(6)
    if how == 1:
        maker = w.fresh("make_optimizer")
        w.define(f"def {maker}(params, kind='{w.pick('sgd', 'adam')}', lr=0.01):", "    if kind == 'sgd':", "        return torch.optim.SGD(params, lr=lr)",
                 "    elif kind == 'adam':", "        return torch.optim.Adam(params, lr=lr)", "    raise ValueError(kind)")  # fmt: skip
        chosen_kind = w.pick("", ", kind='adam'")
        made = f"{maker}({given}{chosen_kind})"
    elif how == 2:
        made = f"{{'sgd': torch.optim.SGD, 'adam': torch.optim.Adam}}['{w.pick('sgd', 'adam')}']({given}, lr=0.01)"
    elif how == 3:
        made = f"functools.partial(torch.optim.SGD, lr=0.01)({given})"
    elif how == 4:
        made = f"getattr(torch.optim, '{w.pick('SGD', 'Adam')}')({given}, lr=0.01)"
    elif how == 5:
        made = f"torch.optim.{w.pick('SGD', 'Adam')}({given}, **{{'lr': 0.01}})"
    lines.append(f"{name} = {made}")
    if other != model and kind == 0 and w.sometimes(3):
        lines.append(f"{name}.add_param_group({{'params': {w.pick(f'{other}.parameters()', f'list({other}.parameters())')}}})")
    return lines


def scheduler(w: Writer, name: str, optimizer: str) -> str:
    """A line that makes a scheduler."""
    kind = w.pick("StepLR({}, 1)", "LambdaLR({}, lambda step: 0.9 ** step)", "CosineAnnealingLR({}, T_max=4)", "OneCycleLR({}, 0.1, total_steps=400)")
    return f"{name} = torch.optim.lr_scheduler.{kind.format(optimizer)}"
