"""Layers and models: each takes and gives two rows of four numbers."""

from generating.writer import Lines, Writer, indented

LEARNING = (
    "nn.Linear(4, 4)",
    "nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))",
    "nn.Linear(4, 4, bias=False)",
    "nn.LayerNorm(4)",
    "nn.BatchNorm1d(4)",
    "nn.PReLU()",
    "nn.Sequential(*[nn.Linear(4, 4) for _ in range(2)])",
    "nn.Sequential(OrderedDict(first=nn.Linear(4, 4), second=nn.Tanh()))",
    "nn.Sequential(OrderedDict([('first', nn.Linear(4, 4)), ('second', nn.Linear(4, 4))]))",
    "nn.Sequential(*(layer for layer in [nn.Linear(4, 4), nn.GELU()]))",
    "nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))",
    "nn.utils.spectral_norm(nn.Linear(4, 4))",
)
"""Layers with parameters."""
LAYERS = (*LEARNING[:4], "nn.Dropout(0.1)", "nn.Identity()", *LEARNING[4:])
UNSURE = (
    "torch.rand(1).item() < 0.5",
    "x.mean().item() > 0.0",
    "random.random() < 0.5",
    "os.environ.get('UNSEEN') is None",
    "x.sum() > 0",
    "len(sys.argv) > 1",
)
"""Conditions that only a run knows."""


def own_class(w: Writer, deep: int = 0) -> str:
    """Define a class of modules, and return an expression that makes one."""
    name = w.fresh("Net")
    start: Lines = ["super().__init__()"]
    forward: Lines = []
    if deep == 0:
        start.append("self.base = nn.Linear(4, 4)")
        forward.append("x = self.base(x)")
    methods: Lines = []
    arguments, given = "", ""
    for _ in range(1 + w.number(2)):
        made, used = _member(w, methods, deep)
        start += made
        forward += ["residual = x", *used, "x = x + residual"] if w.sometimes(5) else used
    if w.sometimes(5):
        arguments, given = ", width=4, *, depth=1", w.pick("", "4, depth=2", "width=4", "depth=3")
        start += ["self.extra = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])"]
        forward += ["for each in self.extra:", "    x = each(x)"]
    body = [
        "def __init__(self" + arguments + "):",
        *indented(start),
        "def forward(self, x):",
        *indented([*forward, "return x"]),
        *methods,
    ]
    base = "nn.Module"
    w.define(f"class {name}({base}):", *indented(body))
    if w.sometimes(6):
        derived = w.fresh("Net")
        more = (
            [
                "def __init__(self" + arguments + "):",
                *indented(
                    [
                        f"super().__init__({'width, depth=depth' if arguments else ''})",
                        "self.last = nn.Linear(4, 4)",
                    ]
                ),
            ]
            if w.sometimes()
            else []
        )
        end = [
            "def forward(self, x):",
            *indented(["x = super().forward(x)", "return self.last(x)" if more else "return torch.tanh(x)"]),
        ]
        w.define(f"class {derived}({name}):", *indented([*more, *end]))
        name = derived
    return f"{name}({given})"


def _member(w: Writer, methods: Lines, deep: int) -> tuple[Lines, Lines]:
    """Lines that make a member in `__init__`, and lines of `forward` that use it."""
    name = w.fresh("part")
    own = f"self.{name}"
    inner = own_class(w, deep + 1) if deep < 1 and w.sometimes(5) else w.pick(*LAYERS)
    kind = w.pick(_plain, _listed, _keyed, _unregistered, _parameter, _buffer, _alias, _tied, _frozen, _recurrent, _conditional,
                  _by_helper, _detached, _functional, _attention, _assigned, _optional, _growing, _tupled, _lazily)  # fmt: skip
    return kind(w, own, inner, methods)  # type: ignore[no-any-return]


def _plain(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    return [f"{own} = {inner}"], [f"x = {own}(x)"]


def _listed(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    count = w.number(3) + 1
    made = w.pick(
        [f"{own} = nn.ModuleList([nn.Linear(4, 4) for _ in range({count})])"],
        [f"{own} = nn.ModuleList(nn.Linear(4, 4) for _ in range({count}))"],
        [f"{own} = nn.ModuleList()", f"for _ in range({count}):", f"    {own}.append(nn.Linear(4, 4))"],
        [f"{own} = nn.ModuleList([{inner}])", f"{own}.extend([nn.Linear(4, 4)])"],
        [f"layers = [nn.Linear(4, 4)] * {count}", f"{own} = nn.ModuleList(layers)"],
        [
            "layers = []",
            f"for _ in range({count}):",
            "    layers += [nn.Linear(4, 4), nn.ReLU()]",
            f"{own} = nn.ModuleList(layers)",
        ],
    )
    used = w.pick(
        [f"for each in {own}:", "    x = each(x)"],
        [f"x = {own}[0](x)"],
        [f"x = {own}[-1](x)"],
        [f"for index, each in enumerate({own}):", "    x = each(x) if index % 2 == 0 else x + each(x)"],
        [f"for index in range(len({own})):", f"    x = {own}[index](x)"],
        [f"for each in {own}[1:]:", "    x = each(x)"],
        [f"x = sum(each(x) for each in {own})"],
        [f"x = torch.stack([each(x) for each in {own}]).mean(0)"],
        [f"for each in reversed({own}):", "    x = each(x)"],
        [f"for each, scale in zip({own}, (1.0, 2.0)):", "    x = each(x) * scale"],
        [f"x = functools.reduce(lambda value, each: each(value), {own}, x)"],
        [f"for each in list({own})[::-1]:", "    x = each(x)"],
        [f"first, *others = {own}", "x = first(x)", "for each in others:", "    x = each(x)"],
    )
    return made, used


def _keyed(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    made = w.pick(
        [f"{own} = nn.ModuleDict({{'a': nn.Linear(4, 4), 'b': {inner}}})"],
        [f"{own} = nn.ModuleDict({{name: nn.Linear(4, 4) for name in ('a', 'b')}})"],
        [f"{own} = nn.ModuleDict(dict(a=nn.Linear(4, 4)))", f"{own}['b'] = nn.Linear(4, 4)"],
        [f"{own} = nn.ModuleDict()", "for name in 'ab':", f"    {own}[name] = nn.Linear(4, 4)"],
        [f"{own} = nn.ModuleDict([('a', nn.Linear(4, 4)), ('b', nn.Linear(4, 4))])"],
        [f"{own} = nn.ModuleDict(zip('ab', [nn.Linear(4, 4), nn.Linear(4, 4)]))"],
    )
    used = w.pick(
        [f"x = {own}['a'](x)"],
        [f"for each in {own}.values():", "    x = each(x)"],
        [f"for name, each in {own}.items():", "    x = each(x)"],
        [f"for name in {own}:", f"    x = {own}[name](x)"],
        [f"outputs = {{name: each(x) for name, each in {own}.items()}}", "x = outputs['b']"],
        [f"if 'a' in {own}:", f"    x = {own}['a'](x)"],
        [f"x = {own}['a' if {w.pick(*UNSURE)} else 'b'](x)"],
    )
    return made, used


def _unregistered(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    return w.pick(  # type: ignore[no-any-return]
        ([f"{own} = [nn.Linear(4, 4), {inner}]"], [f"for each in {own}:", "    x = each(x)"]),
        ([f"{own} = {{'a': nn.Linear(4, 4)}}"], [f"x = {own}['a'](x)"]),
        ([f"{own} = [nn.Linear(4, 4)]"], [f"x = {own}[0](x)"]),
    )


def _parameter(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    made = w.pick(
        [f"{own} = nn.Parameter(torch.ones(4))"],
        [f"{own} = nn.Parameter(torch.zeros(4), requires_grad=False)"],
        [f"self.register_parameter('{own[5:]}', nn.Parameter(torch.ones(4)))"],
        [f"{own} = nn.Parameter(torch.randn(4)).requires_grad_()"],
        ["weight = torch.randn(4)", "nn.init.normal_(weight)", f"{own} = nn.Parameter(weight)"],
    )
    return made, w.pick([f"x = x * {own}"], [f"x = x + {own}.unsqueeze(0)"], [f"x = x * {own}.detach()"], [f"x = x * {own}.data + {own}"],
                        [f"x = x * torch.exp({own}).clamp(max=2.0)"], [f"x = torch.where(x > 0, x * {own}, x)"])  # fmt: skip


def _buffer(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    used = w.pick([f"x = x * {own}"], ["if self.training:", "    with torch.no_grad():", f"        {own}.mul_(0.9).add_(x.mean(0), alpha=0.1)", f"x = x - {own}"],
                  [f"{own}.copy_(x.detach().mean(0))", f"x = x - {own}"], [f"{own} = {own} * 0.5 + x.detach().mean(0)", f"x = x + {own}"])  # fmt: skip
    return [f"self.register_buffer('{own[5:]}', torch.ones(4))"], used


def _alias(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    return [f"{own} = {inner}", f"{own}_again = {own}"], [f"x = {own}_again({own}(x))"]


def _tied(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    return [
        f"{own} = nn.Linear(4, 4)",
        f"{own}_tied = nn.Linear(4, 4, bias=False)",
        f"{own}_tied.weight = {own}.weight",
    ], [f"x = {own}_tied({own}(x))"]


def _frozen(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    freeze = w.pick(
        [f"{own}.requires_grad_(False)"],
        [f"for each in {own}.parameters():", "    each.requires_grad = False"],
        [f"for name, each in {own}.named_parameters():", "    each.requires_grad_('bias' in name)"],
        [
            f"for name, each in {own}.named_parameters():",
            "    if name.endswith('weight'):",
            "        each.requires_grad = False",
        ],
    )
    return [f"{own} = {w.pick('nn.Linear(4, 4)', inner)}", *freeze], [f"x = {own}(x)"]


def _recurrent(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    return w.pick(  # type: ignore[no-any-return]
        (
            [f"{own} = nn.GRU(4, 4, batch_first=True)"],
            [f"states, _ = {own}(x.unsqueeze(1))", "x = states[:, -1]"],
        ),
        (
            [f"{own} = nn.LSTM(4, 4)"],
            [f"states, (hidden, cell) = {own}(x[None])", "x = hidden.squeeze(0) + cell[-1]"],
        ),
        (
            [f"{own} = nn.GRUCell(4, 4)"],
            [
                "hidden = torch.zeros(2, 4)",
                "for _ in range(2):",
                f"    hidden = {own}(x, hidden)",
                "x = hidden",
            ],
        ),
    )


def _attention(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    return [f"{own} = nn.MultiheadAttention(4, 2, batch_first=True)"], [
        f"mixed, weights = {own}(x[:, None], x[:, None], x[:, None])",
        "x = x + mixed.squeeze(1)",
    ]


def _conditional(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    test = w.pick(
        "self.training",
        "not self.training",
        f"{own}_on",
        "self.use",
        *UNSURE,
        "torch.is_grad_enabled()",
        "x.shape[1] == 4",
        "x.requires_grad",
    )
    test = test.replace(f"{own}_on", f"{own}_on") if "_on" in test else test
    made = [
        f"{own} = {inner}",
        f"{own}_on = {w.pick('True', 'False')}",
        f"self.use = {w.pick('False', 'True')}",
    ]
    return made, w.pick(
        [f"if {test}:", f"    x = {own}(x)"],
        [f"if {test}:", f"    x = {own}(x)", "else:", "    x = torch.relu(x)"],
        [f"x = {own}(x) if {test} else x"],
        [f"if {test}:", f"    return {own}(x)"],
        [f"if not ({test}):", "    return x", f"x = {own}(x)"],
        [f"x = ({own} if {test} else torch.tanh)(x)"],
        [f"with torch.set_grad_enabled({test if 'x.sum' not in test else 'True'}):", f"    x = {own}(x)"],
    )


def _by_helper(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    name = w.fresh("apply")
    kind = w.number(6)
    if kind == 0:
        methods += [f"def {name}(self, x):", f"    return {own}(x)"]
    elif kind == 1:
        methods += ["@staticmethod", f"def {name}(x):", "    return F.gelu(x)"]
    elif kind == 2:
        methods += ["@property", f"def {name}(self):", f"    return {own}"]
    elif kind == 3:
        methods += ["@torch.no_grad()", f"def {name}(self, x):", f"    return {own}(x)"]
    elif kind == 4:
        methods += [
            f"def {name}(self, *inputs, **options):",
            "    scale = options.get('scale', 1.0)",
            f"    return {own}(*inputs) * scale",
        ]
        return [f"{own} = {inner}"], [f"x = self.{name}(x, {w.pick('', 'scale=2.0')})"]
    elif kind == 5:
        methods += [f"def {name}(self, x):", f"    return x, {own}(x)"]
        return [f"{own} = {inner}"], w.pick(
            [f"_, x = self.{name}(x)"],
            [f"x = self.{name}(x)[1]"],
            [f"old, new = self.{name}(x)", "x = old + new"],
        )
    else:
        methods += [f"def {name}(self, x):", f"    return {{'hidden': {own}(x), 'input': x}}"]
        return [f"{own} = {inner}"], w.pick(
            [f"x = self.{name}(x)['hidden']"],
            [f"found = self.{name}(x)", "x = found.get('hidden') + found['input']"],
        )
    return [f"{own} = {inner}"], [f"x = self.{name}(x)"]


def _detached(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    return [f"{own} = {inner}"], w.pick(
        [f"x = {own}(x.detach())"],
        [f"x = {own}(x).detach() + x"],
        ["with torch.no_grad():", f"    fixed = {own}(x)", "x = x + fixed"],
        [f"x = x + ({own}(x) - x).detach()"],
        ["with torch.no_grad():", "    with torch.enable_grad():", f"        x = {own}(x)"],
        [f"x = {own}(x)", "if not self.training:", "    x = x.detach()"],
    )


def _functional(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    return [f"{own} = nn.Linear(4, 4)"], w.pick(
        [f"x = F.linear(x, {own}.weight, {own}.bias)"],
        [f"x = x @ {own}.weight.t()"],
        [f"x = F.dropout({own}(x), 0.1, self.training)"],
        [f"x = torch.cat([{own}(x)[:, :2], x[:, 2:]], dim=1)"],
        [
            f"left, right = {own}(x).chunk(2, dim=-1)",
            "x = torch.cat([left * torch.sigmoid(right), right], -1)",
        ],
        ["x = x.clone()", f"x[:, 0] = {own}(x)[:, 1]"],
        [f"x = torch.utils.checkpoint.checkpoint({own}, x, use_reentrant=False)"],
        [f"x = torch.einsum('bi,oi->bo', x, {own}.weight)"],
        [f"x = x.masked_fill({own}(x) > 0, 0.0)"],
        [f"x = F.softmax({own}(x), dim=-1) * x"],
        [f"x += {own}(x)"],
    )


def _assigned(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    name = own[5:]
    return w.pick(  # type: ignore[no-any-return]
        ([f"self.add_module('{name}', {inner})"], [f"x = {own}(x)"]),
        ([f"setattr(self, '{name}', {inner})"], [f"x = getattr(self, '{name}')(x)"]),
        (
            ["for index in range(2):", f"    setattr(self, f'{name}_{{index}}', nn.Linear(4, 4))"],
            ["for index in range(2):", f"    x = getattr(self, f'{name}_{{index}}')(x)"],
        ),
        ([f"{own}_a, {own}_b = nn.Linear(4, 4), {inner}"], [f"x = {own}_b({own}_a(x))"]),
        ([f"{own}_a = {own}_b = {inner}"], [f"x = {own}_b({own}_a(x))"]),
        ([f"{own} = nn.Linear(4, 4)", f"{own} = {inner}"], [f"x = {own}(x)"]),
        ([f"{own}_old = nn.Linear(4, 4)", f"{own} = {inner}", f"del {own}_old"], [f"x = {own}(x)"]),
        (
            [
                "kinds = {'line': lambda: nn.Linear(4, 4), 'norm': lambda: nn.LayerNorm(4)}",
                f"{own} = kinds['{w.pick('line', 'norm')}']()",
            ],
            [f"x = {own}(x)"],
        ),
        (["make = functools.partial(nn.Linear, 4)", f"{own} = make(4)"], [f"x = {own}(x)"]),
    )


def _optional(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    made = f"{own} = {inner} if {w.pick('True', 'False', 'random.random() < 0.5', 'len(sys.argv) > 3')} else {w.pick('None', 'nn.Identity()', 'nn.Linear(4, 4)')}"
    return [made], w.pick(
        [f"if {own} is not None:", f"    x = {own}(x)"],
        [f"x = x if {own} is None else {own}(x)"],
        [f"if {own}:", f"    x = {own}(x)"],
    )


def _growing(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    return w.pick(  # type: ignore[no-any-return]
        (
            [f"{own} = {inner}", "self.seen = 0"],
            ["self.seen += 1", "if self.seen > 2:", f"    x = {own}(x)"],
        ),
        (
            [f"{own} = {inner}", "self.last = None"],
            [f"x = {own}(x)", "if self.last is not None:", "    x = x + self.last", "self.last = x.detach()"],
        ),
        ([f"{own} = {inner}", "self.log = []"], [f"x = {own}(x)", "self.log.append(x.mean().item())"]),
    )


def _tupled(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    return [f"{own} = {inner}"], w.pick(
        [f"pair = ({own}(x), x)", "x = pair[0] + pair[1]"],
        [f"a, *b = {own}(x), x, x", "x = a + b[0]"],
        [f"found = dict(a={own}(x))", "found['a'] = found['a'] * 2", "x = found.pop('a')"],
        ["outputs = []", "for _ in range(3):", f"    outputs.append({own}(x))", "x = outputs[-1]"],
        [
            "outputs = []",
            "for _ in range(3):",
            f"    outputs.append({own}(x))",
            "x = torch.stack(outputs).sum(0)",
        ],
        [f"x = (lambda value: {own}(value) + value)(x)"],
        [f"x = max([{own}(x), x], key=lambda value: value.sum().item())"],
    )


def _lazily(w: Writer, own: str, inner: str, methods: Lines) -> tuple[Lines, Lines]:
    name = w.fresh("made")
    methods += [
        f"def {name}(self):",
        f"    if {own} is None:",
        f"        {own} = {inner}",
        f"    return {own}",
    ]
    return [f"{own} = None"], [f"x = self.{name}()(x)"]
