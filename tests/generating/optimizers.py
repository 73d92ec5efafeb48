"""Optimizers and schedulers over the parameters of models."""

from generating.writer import Lines, Writer

MAKERS = ("torch.optim.SGD({}, lr=0.01)", "torch.optim.Adam({}, lr=1e-3)", "torch.optim.AdamW({}, 1e-3, weight_decay=0.01)",
          "torch.optim.SGD({}, 0.01, momentum=0.9)", "torch.optim.RMSprop(params={}, lr=0.001)")  # fmt: skip


def optimizer(w: Writer, name: str, models: list[str]) -> Lines:
    """Lines that make an optimizer of some of these models."""
    model, other = w.pick(*models), w.pick(*models)
    lines, given = _parameters(w, model, other)
    lines = [*lines, f"{name} = {_made(w, given)}"]
    if other != model and given == f"{model}.parameters()" and w.sometimes(3):
        group = w.pick(f"{other}.parameters()", f"list({other}.parameters())")
        lines.append(f"{name}.add_param_group({{'params': {group}}})")
    return lines


def _parameters(w: Writer, model: str, other: str) -> tuple[Lines, str]:
    """Lines that collect parameters, and the expression that an optimizer gets."""
    own, named = f"{model}.parameters()", f"{model}.named_parameters()"
    alone: list[tuple[Lines, str]] = [
        ([], own),
        ([], f"list({own})"),
        ([], f"[p for p in {own} if p.requires_grad]"),
        ([], f"filter(lambda p: p.requires_grad, {own})"),
        ([], f"(p for p in {own} if p.requires_grad)"),
        (
            [
                "decay, plain = [], []",
                f"for key, p in {named}:",
                "    (plain if p.ndim == 1 else decay).append(p)",
            ],
            GROUPS,
        ),
        (
            [
                "decay, plain = [], []",
                f"for key, p in {named}:",
                "    (plain if key.endswith('s') else decay).append(p)",
            ],
            GROUPS,
        ),
        (
            [
                "chosen = []",
                f"for key, p in {named}:",
                "    if 'bias' in key:",
                "        continue",
                "    chosen.append(p)",
            ],
            "chosen",
        ),
        ([f"chosen = {{key: p for key, p in {named}}}"], "chosen.values()"),
        ([], named),
        ([], f"[*{own}]"),
        ([], f"[*{own}][:1]"),
        ([], f"list({own})[-1:]"),
        ([f"first, *chosen = {own}"], "[first]"),
    ]
    both: list[tuple[Lines, str]] = [
        ([], f"list({own}) + list({other}.parameters())"),
        ([], f"itertools.chain({own}, {other}.parameters())"),
        ([], f"[{{'params': {own}}}, {{'params': {other}.parameters(), 'lr': 0.1}}]"),
        ([], f"[p for one in ({model}, {other}) for p in one.parameters()]"),
        (["chosen = []", f"for one in [{model}, {other}]:", "    chosen.extend(one.parameters())"], "chosen"),
        (
            ["chosen = set()", f"for one in [{model}, {other}]:", "    chosen |= set(one.parameters())"],
            "list(chosen)",
        ),
    ]
    return w.pick(*alone, *(both if other != model else []))  # type: ignore[no-any-return]


def _made(w: Writer, given: str) -> str:
    """An expression that makes an optimizer."""
    kind = w.pick("SGD", "Adam")
    how = w.number(5)
    if how == 1:
        maker = w.fresh("make_optimizer")
        w.define(
            f"def {maker}(params, kind='{w.pick('sgd', 'adam')}', lr=0.01):",
            *("    if kind == 'sgd':", "        return torch.optim.SGD(params, lr=lr)"),
            *("    elif kind == 'adam':", "        return torch.optim.Adam(params, lr=lr)"),
            "    raise ValueError(kind)",
        )
        named = w.pick("", ", kind='adam'")
        return f"{maker}({given}{named})"
    table = "{'SGD': torch.optim.SGD, 'Adam': torch.optim.Adam}"
    if how == 0:
        return str(w.pick(*MAKERS)).format(given)
    return (
        f"{table}['{kind}']({given}, lr=0.01)",
        f"functools.partial(torch.optim.SGD, lr=0.01)({given})",
        f"getattr(torch.optim, '{kind}')({given}, lr=0.01)",
        f"torch.optim.{kind}({given}, **{{'lr': 0.01}})",
    )[how - 2]


GROUPS = "[{'params': decay, 'weight_decay': 0.1}, {'params': plain, 'weight_decay': 0.0}]"


def scheduler(w: Writer, name: str, optimizer: str) -> str:
    """A line that makes a scheduler."""
    kind = w.pick(
        "StepLR({}, 1)",
        "LambdaLR({}, lambda step: 0.9 ** step)",
        "CosineAnnealingLR({}, T_max=4)",
        "OneCycleLR({}, 0.1, total_steps=400)",
    )
    return f"{name} = torch.optim.lr_scheduler.{kind.format(optimizer)}"
