"""Small programs of which a dry run once said what is not so, found by `benchmarks/generated.py`."""

from collections.abc import Iterator

import pytest
from generating.runs import Runner, runner

HEAD = "import contextlib\nimport copy\nimport functools\nimport os\nimport random\nimport sys\nfrom collections import OrderedDict\nimport torch\nfrom torch import nn\nx, y = torch.randn(2, 4), torch.randn(2, 4)\n"
PROGRAMS = {
    "settings are overwritten by others that nobody knows": """
settings = {"freeze": False, "rate": 0.1}
settings.update({name: len(name) > 4 for name in os.environ})
settings.update(freeze=True) if len(sys.argv) < 3 else None
model = nn.Linear(4, 4)
for p in model.parameters():
    p.requires_grad = not settings["freeze"]
(model(x) + nn.Linear(4, 4)(x)).sum().backward()
""",
    "what an optimizer has is gone over": """
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for name, value in list(vars(optimizer).items()):
    if isinstance(value, str):
        vars(optimizer)[name] = f"{name}"
model(x).sum().backward()
optimizer.step()
""",
    "parameters are frozen by their attribute": """
model = nn.Linear(4, 4)
for p in model.parameters():
    p.requires_grad = False
loss = (model(x) + nn.Linear(4, 4)(x)).sum()
loss.backward()
""",
    "many parameters are frozen": """
model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(3)], nn.LSTM(4, 4))
for name, p in model.named_parameters():
    p.requires_grad = False
for p in nn.MultiheadAttention(4, 2).parameters():
    p.requires_grad_(False)
chosen = list(model.parameters())
""",
    "a layer is one of two": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.BatchNorm1d(4) if len(sys.argv) > 3 else nn.Linear(4, 4)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.step()
""",
    "parameters are perhaps held": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LSTM(4, 4) if len(sys.argv) > 3 else None
        self.second = nn.Linear(4, 4)
model, others = Net(), []
for name, p in model.named_parameters():
    if 'bias' not in name:
        others.append(p)
for chosen in (model.parameters(), filter(lambda p: p.requires_grad, model.parameters()), list(model.parameters())[:1], others):
    optimizer = torch.optim.SGD(chosen, lr=0.1)
    optimizer.step()
for p in model.parameters():
    p.requires_grad_(False)
for p in [*model.parameters()]:
    p.requires_grad = False
loss = model.second(x).sum() + nn.Linear(4, 4)(x).sum()
loss.backward()
""",
    "a part is one of two that are there": """
first, second = nn.Linear(4, 4), nn.Linear(4, 4)
model = nn.Module()
model.part = first if random.random() < 2 else second
model.eval()
model.requires_grad_(False)
model.apply(lambda part: part.requires_grad_(False))
loss = first(x).sum() + second(x).sum()
loss.backward()
""",
    "checkpoints that begin a backward of their own": """
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
first, second, third = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
checkpoint(first, x)
loss = checkpoint(second, first(x)).sum() + checkpoint(second, x, use_reentrant=True).sum()
loss.backward()
loss = (third(x) + checkpoint(first, x)).sum()
loss.backward()
loss = checkpoint_sequential(nn.Sequential(first, second, third), 3, x, use_reentrant=True).sum()
loss.backward()
loss = checkpoint_sequential(nn.Sequential(first, second, third), 2, first(x), use_reentrant=True).sum()
loss.backward()
loss = checkpoint(lambda a: second(first(a)), third(x)).sum()
loss.backward()
""",
    "a part that may be many things": """
class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.part = None
    def forward(self, x):
        if self.part is None:
            self.part = nn.Linear(4, 4)
        return self.part(x)
model, other = Lazy(), nn.Linear(4, 4)
for step in range(20):
    chosen = model if random.random() < 2 else other
    chosen(x)
    chosen = model if random.random() < 2 else other
    chosen(x)
    chosen = model if random.random() < 2 else other
    chosen(x)
""",
    "what changes nothing gives the tensor itself": """
model, kept = nn.Linear(4, 4), nn.Dropout(0)
out = model(x)
with torch.no_grad():
    same = nn.Identity()(out)
    same = kept(nn.Dropout(0.5).eval()(same))
    same = nn.functional.dropout(same.float(), 0.5, False)
    lost = nn.Dropout(0.5)(out)
loss = same.sum() + lost.sum() + nn.Linear(4, 4)(x).sum()
loss.backward()
model.register_parameter('scale', nn.Parameter(torch.randn(4)).float())
model.shift = nn.Parameter(torch.randn(4, dtype=torch.float64)).to(x.dtype)
given = nn.Parameter(torch.as_tensor(float(len(sys.argv))))
holder = nn.Module()
holder.given = given.float()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.step()
loss = holder.given + nn.Linear(4, 4)(x).sum()
loss.backward()
""",
    "layers in several precisions": """
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.1))
model(x)
model.double()(x.double())
model.to(torch.float32)(x)
model.to(x.device)(x)
with torch.autocast('cpu', dtype=torch.bfloat16):
    model(x)
    with torch.autocast('cpu', enabled=False):
        model(x)
@torch.autocast('cpu', dtype=torch.bfloat16)
def mixed(x):
    return model(x)
mixed(x)
small = nn.Linear(4, 4, dtype=torch.bfloat16)
small(x.bfloat16())
for p in small.parameters():
    p.data = p.data.float()
small(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4, dtype=torch.float64))
        self.embedding = nn.Embedding(5, 4)
    def forward(self, x):
        return self.embedding(x) * self.scale
Net()(torch.tensor([1, 2]))
torch.set_default_dtype(torch.float64)
nn.Linear(4, 4)(torch.randn(2, 4))
nn.CrossEntropyLoss()(torch.randn(2, 4), torch.tensor([1, 2]))
nn.MSELoss()(torch.randn(2, 4), torch.randn(2, 4))
""",
    "a part that is made late comes last": """
class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = None
        self.own = nn.Linear(4, 4)
    def forward(self, x):
        if self.part is None:
            self.part = nn.Linear(4, 4, bias=False)
        return self.part(self.own(x))
model = Lazy()
model(x)
*others, last = model.parameters()
optimizer = torch.optim.SGD(list(model.parameters())[:1], lr=0.1)
optimizer.step()
""",
    "no rows and one row": """
from torch.utils.data import DataLoader, TensorDataset
def rows(count):
    for _ in range(count):
        yield torch.randn(2, 4)
models = [nn.Linear(4, 4) for _ in range(7)]
for batch, in DataLoader(TensorDataset(torch.randn(0, 4)), batch_size=2):
    models[0](batch)
for (batch,), step in zip(DataLoader(TensorDataset(torch.randn(2, 4)), batch_size=2), range(3)):
    models[1](batch)
    models[1].eval()
for (batch,), step in zip(DataLoader(TensorDataset(torch.randn(9, 4)), batch_size=2), [1]):
    models[2](batch)
    models[2].eval()
for batch, other in zip(rows(2), rows(0)):
    models[3](batch)
for batch, other in zip(rows(2), rows(1)):
    models[2](batch)
    models[2].train()
for step, batch in list(enumerate(rows(0))):
    models[3](batch)
for batch in list(rows(1)):
    models[4](batch)
    models[4].eval()
for batch in list(torch.randn(0, 2, 4)):
    models[5](batch)
for batch, in DataLoader([(row,) for row in torch.randn(3, 4)], batch_size=2, drop_last=True):
    models[6](batch)
    models[6].eval()
""",
    "a model is one of two": """
first, second = nn.Linear(4, 4), nn.LayerNorm(4)
chosen = first if random.random() < 2 else second
loss = chosen(x).sum()
loss.backward()
""",
    "a graph is lost on one path": """
model = nn.Linear(4, 4)
out = model(x)
if os.environ.get('UNSEEN') is None:
    out = out.detach()
loss = out.sum() + model.bias.sum()
loss.backward()
""",
    "a call that perhaps happens does not record": """
model = nn.Linear(4, 4)
def apply(net):
    return net(x)
if len(sys.argv) > 1:
    with torch.no_grad():
        apply(model)
apply(model).sum().backward()
""",
    "a loop that is left does not come to its else": """
model = nn.Linear(4, 4)
for _ in (1, 2, 3):
    if random.random() < 2:
        break
else:
    model(x)
""",
    "a loop that goes backwards": "for last in reversed(range(3)):\n    pass\nfor lowest in sorted({3, 1, 2}, reverse=True):\n    pass\n",
    "a mode that turns in each pass": """
model = nn.Linear(4, 4)
for step in range(4):
    model(x)
    model.train(not model.training)
""",
    "a mode that a later pass sees": """
model = nn.Linear(4, 4)
for epoch in range(2):
    model.train()
    for step in range(4):
        match step:
            case 1:
                model.eval()
            case 2 | 3:
                model(x)
""",
    "a weight that is computed": """
model = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(x).sum().backward()
optimizer.step()
""",
    "a computed weight is frozen and copied": """
model = nn.Sequential(nn.utils.spectral_norm(nn.Linear(4, 4)), nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)))
again = copy.deepcopy(model)
for p in model.parameters():
    p.requires_grad_(False)
lengths = [p for p in model.parameters() if p.ndim == 1]
loss = model(x).sum() + again(x).sum() + (x @ again[1].weight).sum()
loss.backward()
""",
    "a weight has two parametrizations and then none": """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
    def forward(self, weight):
        return weight * self.scale
class Cut(nn.Module):
    def forward(self, weight):
        return weight.detach()
model = nn.Linear(4, 4)
nn.utils.parametrize.register_parametrization(model, 'weight', Scaled())
loss = model(x).sum()
loss.backward()
nn.utils.parametrize.register_parametrization(model, 'weight', Cut())
loss = model(x).sum()
loss.backward()
nn.utils.parametrize.remove_parametrizations(model, 'weight')
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.step()
""",
    "layers of another size than they are written": """
model = nn.LSTM(4, 3, num_layers=2, bidirectional=True)
attention = nn.MultiheadAttention(4, 2)
p, *others = [*model.parameters(), *attention.parameters()]
""",
    "an exception that is suppressed": """
model = nn.Linear(4, 4)
for step in range(2):
    model(x)
    with contextlib.suppress(KeyError):
        if random.random() < 2:
            raise KeyError('late')
        model.eval()
""",
    "an exception that is caught": """
model = nn.Linear(4, 4)
try:
    model.eval()
    if os.environ.get('UNSEEN') is None:
        raise KeyError('early')
    model.train()
    model(x)
except ValueError:
    model.train()
except (KeyError, TypeError) as error:
    print(error)
model(x)
""",
    "an exception that leaves a block without recording": """
model = nn.Linear(4, 4)
try:
    with torch.no_grad():
        if random.random() < 2:
            raise KeyError('early')
        model.eval()
except KeyError:
    pass
loss = model(x).sum()
loss.backward()
""",
    "a return from a block without recording": """
model = nn.Linear(4, 4)
def look():
    with torch.no_grad():
        if random.random() < 2:
            return 1
        model.eval()
    return 2
look()
loss = model(x).sum()
loss.backward()
""",
    "a return that something final follows": """
model = nn.Linear(4, 4)
def look():
    model.eval()
    try:
        if random.random() < 2:
            return 1
        model(x)
    finally:
        model.train()
look()
loss = model(x).sum()
""",
    "a decorated function that raises": """
model = nn.Linear(4, 4)
@torch.no_grad()
def look():
    if random.random() < 2:
        raise KeyError('early')
try:
    look()
except KeyError:
    pass
loss = model(x).sum()
loss.backward()
""",
    "a dictionary of modules made from pairs": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict(zip('ab', [nn.Linear(4, 4), nn.Linear(4, 4)]))
    def forward(self, x):
        for name in self.parts:
            if 'a' in self.parts:
                x = self.parts[name](x)
        return x
loss = Net()(x).sum()
loss.backward()
""",
    "layers one after another by reduce": """
layers = [nn.Linear(4, 4), nn.LayerNorm(4)]
loss = functools.reduce(lambda value, layer: layer(value), layers, x).sum()
loss.backward()
""",
    "sets of parameters": """
first, second = nn.Linear(4, 4), nn.Linear(4, 4)
chosen = set()
for model in (first, second, first):
    chosen |= set(model.parameters())
count = len(chosen)
left = chosen - set(second.parameters())
optimizer = torch.optim.SGD(list(left), lr=0.1)
optimizer.step()
""",
    "lists that change in place": """
numbers = [3, 1, 2]
numbers.sort()
numbers.reverse()
numbers += [5]
numbers.remove(3)
again = [1]
for _ in range(3):
    again += again
""",
    "a parameter that hangs on a layer, and a bias that it got later": """
layer = nn.Linear(4, 4, bias=False)
layer.temperature = nn.Parameter(torch.ones(1))
layer.bias = nn.Parameter(torch.zeros(4))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
loss = layer(x).sum()
loss.backward()
optimizer.step()
""",
    "a model and its copy that nobody calls": """
model = nn.Sequential(OrderedDict([('first', nn.Linear(4, 4)), ('second', nn.Linear(4, 4))]))
again = copy.deepcopy(model)
loss = nn.Linear(4, 4)(x).sum() + sum(p.sum() for p in again.parameters())
loss.backward()
""",
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with runner(tmp_path_factory.mktemp("shrunk")) as running:
        yield running


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_nothing_is_claimed_that_is_not_so(both: Runner, text: str) -> None:
    compared = both.compared(HEAD + text)
    assert compared.status == "ended"
    assert compared.false == []
