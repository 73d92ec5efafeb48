"""`einops` and `einx`: tensors in another shape, or reduced. Autograd goes through all of it."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import family, method, new_class, stub, tuple_of
from ta_lint.dryrun.stubs.torch import dtypes
from ta_lint.dryrun.stubs.torch.modules import MODULE
from ta_lint.dryrun.stubs.torch.rows import FOLLOWS, Row, define
from ta_lint.dryrun.stubs.torch.shapes import unknown
from ta_lint.dryrun.stubs.torch.tensors import computed
from ta_lint.dryrun.values import NONE, Native, Unknown, Value

EINOPS = ("einops.",)
_FOLLOWS = Row(FOLLOWS, unknown, dtypes.unknown, "asnumpy einsum rearrange reduce repeat", EINOPS)
define((_FOLLOWS,))
family("einx.", lambda name: Native(name, _FOLLOWS.run) if name.count(".") == 1 else None)


@stub("einops.pack")
def _packed(made: Call) -> Value:
    return tuple_of([computed(made.machine, made.args[:1], made.place), Unknown("packed shapes", "shapes")])


@stub("einops.unpack")
def _unpacked(made: Call) -> Value:
    return tuple_of((), computed(made.machine, made.args[:1], made.place))


@stub("einops.parse_shape")
def _shape(made: Call) -> Value:
    return Unknown("the sizes of a tensor", "shapes")


for _name in ("Rearrange", "Reduce"):
    _layer = new_class(f"einops.layers.torch.{_name}", bases=(MODULE,))
    method(_layer, "__init__")(lambda made: NONE)
    method(_layer, "forward")(lambda made: computed(made.machine, made.args[1:2], made.place))
