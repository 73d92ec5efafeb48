"""What surrounds the tensors: devices, generators, processes, functions of autograd, and the functions of lists of tensors."""

from ta_lint.dryrun.machine import iteration, library
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import (
    CLASSMETHOD,
    attribute_of,
    family,
    list_of,
    method,
    new_class,
    stub,
    tuple_of,
)
from ta_lint.dryrun.sources import OF_RANK
from ta_lint.dryrun.stubs.python.functions import show
from ta_lint.dryrun.stubs.torch import dtypes
from ta_lint.dryrun.stubs.torch.in_place import in_place
from ta_lint.dryrun.stubs.torch.layers import SYNCHRONISED
from ta_lint.dryrun.stubs.torch.modules import is_module, modules
from ta_lint.dryrun.stubs.torch.norms import SYNCHRONISES
from ta_lint.dryrun.stubs.torch.rows import FOLLOWS, FUNCTION, Row, define, register
from ta_lint.dryrun.stubs.torch.shapes import unknown
from ta_lint.dryrun.stubs.torch.tensors import TENSOR, Tensor, computed, tensors_in
from ta_lint.dryrun.values import (
    FALSE,
    NONE,
    TRUE,
    External,
    Known,
    Native,
    Object,
    Sequence,
    Unknown,
    Value,
    options,
)

# -- sizes ---------------------------------------------------------------------------------------------


@stub("torch.Size")
def _size(made: Call) -> Value:
    items, rest = iteration.collected(made.machine, made.args[0], made.node) if made.args else ((), None)
    return tuple_of(items, rest)


@stub(
    "torch._C._get_tracing_state",
    "torch.compiler.is_compiling",
    "torch.compiler.is_dynamo_compiling",
    "torch.jit.is_scripting",
    "torch.jit.is_tracing",
    "torch.onnx.is_in_onnx_export",
)
def _never(made: Call) -> Value:
    """Whether the code is only translated: not where it runs."""
    return FALSE


@stub("torch._assert", "torch._check")
def _assert(made: Call) -> Value:
    return NONE


# -- lists of tensors ----------------------------------------------------------------------------------


def _foreach(name: str) -> Value:
    """`torch._foreach_add_` changes each tensor of its first list, `torch._foreach_add` makes new ones."""

    def run(made: Call) -> Value:
        if not name.endswith("_"):
            return list_of((), computed(made.machine, made.values(), made.place))
        for one in tensors_in(made.args[:1]):
            in_place(Call(made.machine, made.node, [one, *made.args[1:]], made.kwargs, made.loose, name))
        return NONE

    return Native(name, run)


family("torch._foreach_", _foreach)

PADDING = ("torch.nn.utils.rnn.",)
define((
    Row(FOLLOWS, unknown, dtypes.unknown, "pad_sequence", PADDING),
    Row(FOLLOWS, unknown, dtypes.unknown, "unpack_sequence unpad_sequence", PADDING, parts="*"),
    Row(FOLLOWS, unknown, dtypes.unknown, "pad_packed_sequence", PADDING, parts="sequence ~lengths"),
    Row(FOLLOWS, unknown, dtypes.unknown, "parameters_to_vector", ("torch.nn.utils.",)),
    Row(FOLLOWS, unknown, dtypes.unknown, "fused_moving_avg_obs_fake_quant grid_sampler grid_sampler_2d grid_sampler_3d", FUNCTION),
))  # fmt: skip


PACKED = new_class("torch.nn.utils.rnn.PackedSequence", bases=(TENSOR,))


@stub("torch.nn.utils.rnn.pack_padded_sequence", "torch.nn.utils.rnn.pack_sequence")
def _packed(made: Call) -> Value:
    return Tensor(computed(made.machine, made.args[:1], made.place).facts, made.place, PACKED)


@stub("ta_lint.packed_like")
def _packed_like(made: Call) -> Value:
    """What a recurrent layer gives is packed if what it gets is."""
    output, given = made.args
    is_packed = isinstance(output, Tensor) and isinstance(given, Tensor) and given.cls is PACKED
    return Tensor(output.facts, output.made, PACKED) if is_packed else output  # type: ignore[attr-defined]


@attribute_of(PACKED, "data")
def _data_of_packed(made: Call) -> Value:
    return computed(made.machine, made.args, made.place)


@stub("torch.nn.utils.vector_to_parameters")
def _vector(made: Call) -> Value:
    for one in iteration.collected(made.machine, made.argument(1, "parameters"), made.node)[0]:
        if isinstance(one, Tensor):
            made.emit("write", one, by="data")
    return NONE


def _converted(made: Call) -> Value:
    """`SyncBatchNorm.convert_sync_batchnorm`: the layers get another class, and keep their parameters."""
    module = made.argument(1, "module")
    for one in options(module):
        for _, inner in modules(one) if isinstance(one, Object) and is_module(one) else ():
            made.machine.state.write(inner.fields, SYNCHRONISES, TRUE)
    return module


SYNCHRONISED.fields["convert_sync_batchnorm"] = Object(
    CLASSMETHOD, None, {"function": Native("torch.nn.SyncBatchNorm.convert_sync_batchnorm", _converted)}
)


# -- names ---------------------------------------------------------------------------------------------

_INNER = ("torch.amp.", "torch.autograd.", "torch.distributions.", "torch.nn.modules.", "torch.nn.parallel.", "torch.nn.utils.", "torch.optim.", "torch.utils.data.")  # fmt: skip
"""Packages that show all that their modules define: `torch.optim.adam.Adam` is `torch.optim.Adam`."""


def _shown_above(name: str) -> Value | None:
    """What a name in a module means under the name of its package."""
    *above, module, last = name.split(".")
    if module[:1].isupper() or len(above) < 2:
        return None
    found = library.find(".".join((*above, last)))
    return None if isinstance(found, External) else found


for _prefix in _INNER:
    family(_prefix, _shown_above)
register("FloatTensor", lambda made: computed(made.machine, made.args[1:2], made.place), ("torch.sparse.",))


# -- processes -----------------------------------------------------------------------------------------

_DISTRIBUTED = "torch.distributed."


@stub("torch.distributed.get_node_local_rank", "torch.distributed.get_rank")
def _rank(made: Call) -> Value:
    return Unknown("the rank", "int", source=OF_RANK)


@stub("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
def _spawn(made: Call) -> Value:
    """The function runs in several processes, and gets the number of each."""
    items, rest = iteration.collected(made.machine, made.argument(1, "args", ()), made.node)
    number = Unknown("the number of a process", "int", source=OF_RANK)
    call(made.machine, made.argument(0, "fn"), [number, *items], {}, made.node, loose=rest is not None)
    return NONE


def _collective(made: Call) -> Value:
    """The tensors of the first argument get what other processes have. Autograd does not see it."""
    for one in tensors_in(made.args[:1] or made.kwargs.values()):
        made.emit("write", one, by=made.name)
    return Unknown("the handle of a collective call", "handle")


register("""
    all_gather all_gather_into_tensor all_reduce all_to_all all_to_all_single broadcast gather irecv isend recv reduce reduce_scatter
    reduce_scatter_tensor scatter send
""", _collective, (_DISTRIBUTED,))  # fmt: skip


def _objects(made: Call) -> Value:
    """A list gets objects of other processes."""
    given = made.args[0] if made.args else next(iter(made.kwargs.values()), NONE)
    if isinstance(given, Sequence):
        made.machine.state.extend(given, Unknown("an object of another process"))
    return NONE


register(
    "all_gather_object broadcast_object_list gather_object scatter_object_list", _objects, (_DISTRIBUTED,)
)

# -- logs ----------------------------------------------------------------------------------------------

WRITER = new_class(
    "torch.utils.tensorboard.SummaryWriter",
    "tensorboardX.SummaryWriter",
    "torch.utils.tensorboard.writer.SummaryWriter",
)


@method(WRITER, "__init__", "__enter__", "__exit__", "close", "flush", "get_logdir")
def _writer(made: Call) -> Value:
    return made.args[0] if made.name == "__enter__" else Known(None)


@method(
    WRITER, "add_audio", "add_custom_scalars", "add_embedding", "add_figure", "add_graph", "add_histogram", "add_hparams", "add_image",
    "add_images", "add_mesh", "add_pr_curve", "add_scalar", "add_scalars", "add_text", "add_video",
)  # fmt: skip
def _written(made: Call) -> Value:
    for value in made.values():
        show(made, value)
    return NONE
