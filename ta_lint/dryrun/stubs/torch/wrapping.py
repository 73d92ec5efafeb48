"""Wrappers that spread a model over several devices or processes."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call, native
from ta_lint.dryrun.machine.library import method, new_class, stub
from ta_lint.dryrun.stubs.torch.modules import MODULE, WRAPPED_BY, distant, is_module, renewed
from ta_lint.dryrun.stubs.torch.switches import SWITCHES
from ta_lint.dryrun.values import NONE, Class, Known, Object, Value, options

WRAPPER = Class("a wrapper of a module", (MODULE,))

new_class("torch.nn.DataParallel", "torch.nn.parallel.DataParallel", bases=(WRAPPER,))
REPLICATED = new_class(
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    bases=(WRAPPER,),
)
SHARDED = new_class(
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
    bases=(WRAPPER,),
)


def _inner(made: Call) -> Value:
    """The module that it keeps: it takes nothing else, whatever is known of that."""
    given = made.argument(1, "module")
    module = given if any(map(is_module, options(given))) else distant(made.machine, made)
    made.machine.state.write(made.own().fields, "module", module)
    return module


@method(WRAPPER, "__init__")
def _init(made: Call) -> Value:
    _inner(made)
    return NONE


@method(WRAPPER, "__call__", "__runs__")
def _call(made: Call) -> Value:
    """It is in the mode of what it wraps: what has set its own mode on some paths alone has set that on all."""
    own = made.own()
    inner = [one for one in options(own.fields.get("module", NONE)) if isinstance(one, Object)]
    if (
        not isinstance(own.fields.get("training"), Known)
        and len({one.fields.get("training") for one in inner}) == 1
    ):
        for name in ("training", SWITCHES):
            if name in inner[0].fields:
                made.machine.state.write(own.fields, name, inner[0].fields[name])
    return native(MODULE.fields[made.name], made)


@method(WRAPPER, "forward")
def _forward(made: Call) -> Value:
    own = made.own()
    if own not in made.machine.layers:  # called by its name, it runs as the wrapper does
        return call(made.machine, own, made.args[1:], made.kwargs, made.node, loose=made.loose)
    return call(made.machine, own.fields["module"], made.args[1:], made.kwargs, made.node, loose=made.loose)


def _options(made: Call) -> dict[object, Value]:
    """How it wraps."""
    return {
        **dict(enumerate(made.args[2:])),
        **{name: one for name, one in made.kwargs.items() if name != "module"},
    }


@method(REPLICATED, "__init__")
def _replicated(made: Call) -> Value:
    own, given, module = made.own(), made.argument(1, "module"), _inner(made)
    for one in options(module):
        if (fields := getattr(one, "fields", None)) is not None:
            made.machine.state.write(fields, WRAPPED_BY, own)
    made.emit("wrap", module, wrapper=own, how="DistributedDataParallel", options=_options(made), given=given)
    return NONE


@method(SHARDED, "__init__")
def _sharded(made: Call) -> Value:
    module = _inner(made)
    made.emit("prepare", module)
    made.emit(
        "wrap",
        module,
        wrapper=made.own(),
        how="FullyShardedDataParallel",
        options=_options(made),
        given=module,
    )
    renewed(made, module, "sharded parameters")
    return NONE


@stub(
    "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard.fully_shard",
)
def _fully_shard(made: Call) -> Value:
    """Shards a module where it is."""
    module = made.argument(0, "module")
    if not any(map(is_module, options(module))):
        return module
    made.emit("prepare", module)
    made.emit("wrap", module, wrapper=module, how="fully_shard", options=_options(made), given=module)
    renewed(made, module, "sharded parameters")
    return module
