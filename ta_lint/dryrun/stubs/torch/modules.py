"""`torch.nn.Module`: what a module holds, how it is called, and its mode."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import UNSEEN, attribute_of, method, new_class
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch import gradients, outputs
from ta_lint.dryrun.stubs.torch.bundles import bundle
from ta_lint.dryrun.stubs.torch.switches import SWITCHES, evaluating_since, switched
from ta_lint.dryrun.stubs.torch.tensors import (
    PARAMETER,
    PLAIN,
    ModelCall,
    Tensor,
    computed,
    is_parameter,
    roots_of,
    tensors_in,
)
from ta_lint.dryrun.stubs.torch.without_effect import without_effect
from ta_lint.dryrun.values import (
    BY_NAME,
    FALSE,
    NONE,
    TRUE,
    Choice,
    Class,
    Function,
    Hidden,
    Known,
    Object,
    Place,
    Sequence,
    Table,
    Unknown,
    Value,
    options,
)

O = TypeVar("O", bound=Object)
MODULE = new_class("torch.nn.Module", "torch.nn.modules.module.Module", "torch.jit.ScriptModule")
without_effect(MODULE, "requires_grad")
WRAPPED_BY = Hidden("what reduces the gradients of a module, if its forward pass goes through that")
"""An attribute of the module: the wrapper."""
DISTANT = Class("a module out of sight", (MODULE,))
"""A module of which nobody knows the layers: pretrained, or an argument. One parameter stands for all of its own."""
CRITERION = Class("a criterion out of sight", (MODULE,))
"""A module without parameters, which computes a loss of what it gets."""
HAS_BATCH_NORMS = ("it has batch norms",)
"""The key under which a module whose layers are out of sight has the name of its network if that has them, which no attribute has."""
ALL_PARAMETERS = "parameters of its own"
"""The name of the parameter that stands for all parameters of a module whose layers are out of sight."""


@dataclass(frozen=True, slots=True)
class Held:
    """The parameters of something, with their names there, and whether these are all."""

    parameters: tuple[tuple[str, Tensor], ...]
    perhaps: frozenset[Tensor]
    """Those of them that it holds on some paths."""
    open: bool
    """Whether it may hold others."""

    @property
    def complete(self) -> bool:
        """Whether it certainly holds all these and no others."""
        return not self.open and not self.perhaps

    def in_order(self) -> tuple[list[tuple[str, Value]], Value | None]:
        """Those that come first, and what any further one is."""
        unknown = "a parameter out of sight" if self.open else None
        return in_order(((name, one, one not in self.perhaps) for name, one in self.parameters), unknown)

    @property
    def values(self) -> list[Value]:
        """Each, or perhaps None."""
        return [Choice((one, NONE)) if one in self.perhaps else one for _, one in self.parameters]


def distant(machine: Machine, made: Call | None, cls: Class = DISTANT) -> Object:
    """A module of which nobody knows the layers."""
    place = None if made is None else made.place
    parameter = Tensor(replace(PLAIN, requires=True), place, PARAMETER)
    module = Object(cls, place, {"training": TRUE, ALL_PARAMETERS: parameter})
    machine.modules_built.append(module)
    return module


def is_module(value: Value) -> bool:
    """Whether it is a `torch.nn.Module`."""
    return isinstance(value, Object) and not isinstance(value, Class) and value.cls.is_a(MODULE)


def is_guessed(module: Object) -> bool:
    """Whether it stands for a model that nobody has seen, such as one that who calls a function gives it."""
    return module.made is None and module.cls is DISTANT and HAS_BATCH_NORMS not in module.fields


def is_part(part: Value, whole: Value) -> None:
    """A module whose parts are out of sight has had this part all the time: it is in its mode, and has some of its parameters."""
    if isinstance(part, Object) and isinstance(whole, Object) and is_module(part) and is_module(whole):
        same = {name: whole.fields[name] for name in ("training", SWITCHES) if name in whole.fields}
        part.fields.update({**same, "incomplete": TRUE})


def children(module: Object) -> Iterator[tuple[str, Object, bool]]:
    """The modules that a module holds, with their names, and whether it certainly holds them."""
    for name, value in list(module.fields.items()):
        if not isinstance(name, str):
            continue
        if isinstance(value, Choice):
            yield from ((name, one, False) for one in value.options if is_module(one))  # type: ignore[misc]
        elif is_module(value):
            yield name, value, True


def below(module: Object) -> Iterator[tuple[str, Object, bool]]:
    """A module and all below it, each once, with its path, and whether it certainly is there."""
    seen: set[int] = set()
    pending = [("", module, True)]
    while pending:
        path, one, sure = pending.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield path, one, sure
            inside = [
                (f"{path}.{name}" if path else name, child, sure and certain)
                for name, child, certain in children(one)
            ]
            pending += reversed(inside)


def modules(module: Object) -> Iterator[tuple[str, Object]]:
    """A module and all that are or may be below it, each once."""
    return ((path, one) for path, one, _ in below(module))


def held(module: Object, *, recurse: bool = True) -> Held:
    """The parameters of a module and of all below it, or only its own. That of one out of sight stands for all, those of parts included."""
    found: dict[int, tuple[str, Tensor]] = {}
    perhaps: set[Tensor] = set()
    is_open = False
    for prefix, one, sure in below(module) if recurse else (("", module, True),):
        lacks = one.fields.get("incomplete") == TRUE and (one is module or module.cls is not DISTANT)
        is_open = is_open or one.cls.out_of_sight or lacks
        for name, value in one.fields.items():
            for part in value.options if isinstance(value, Choice) else (value,):
                if isinstance(part, Tensor):
                    if part.cls is PARAMETER and isinstance(name, str):
                        found.setdefault(id(part), (f"{prefix}.{name}" if prefix else name, part))
                        if not sure or part is not value:
                            perhaps.add(part)
                elif isinstance(part, Unknown) and part.type is None and name != "training":
                    is_open = True  # it may be a module
    return Held(tuple(found.values()), frozenset(perhaps), is_open)


def contents(module: Object) -> Iterator[Object]:
    """A module, the modules in it and their parameters."""
    yield from (one for _, one, _ in below(module))
    yield from (one for _, one in held(module).parameters)


def in_order(
    found: Iterable[tuple[str, Value, bool]], further: str | None
) -> tuple[list[tuple[str, Value]], Value | None]:
    """What is certainly there, up to the first that perhaps is not, and what any of those that come then is."""
    every = list(found)
    sure = next((index for index, (_, _, certain) in enumerate(every) if not certain), len(every))
    others: list[Value] = [value for _, value, _ in every[sure:]]
    if further is not None:
        others.append(Unknown(further))
    known = [(name, value) for name, value, _ in every[:sure]]
    return known, (Choice(tuple(others)) if len(others) > 1 else others[0] if others else None)


def each_held(machine: Machine, parts: Iterable[tuple[O, bool]], change: Callable[[O], object]) -> None:
    """Change each of these parts, and perhaps those that are held perhaps."""
    for one, sure in parts:

        def arm(one: O = one) -> Flow:
            change(one)
            return Flow.ON

        if sure:
            change(one)
        else:
            machine.branch([arm, lambda: Flow.ON])


@method(MODULE, "__new__")
def _new(made: Call) -> Value:
    cls = made.own(Class)
    module = Object(cls, made.place, {"training": TRUE})
    if cls.out_of_sight:
        module.fields["incomplete"] = TRUE
    made.machine.modules_built.append(module)
    return module


@method(MODULE, "__attached__")
def _attached(made: Call) -> Value:
    """A part that takes the place of something else comes behind the other parts."""
    own, name, new = made.own(), made.constant(1, "name"), made.args[2]
    old = own.fields.get(name)
    if name == "training":
        switched(made.machine, own, new, made.place)
    if isinstance(new, Sequence | Table):
        made.emit("container", own, name=name)
    if any(isinstance(one, Tensor) and one.cls is not PARAMETER for one in options(new)):
        made.emit("tensor attribute", own, name=name, value=new)
    if not _is_part(new):
        return NONE
    replaced(made, own, own.fields.get(ALL_PARAMETERS) if old is None else old, new)
    if old is not None and not any(map(_is_part, options(old))):
        made.machine.state.remove(own.fields, name)
    if old is None:
        added(made, own, new)
    return NONE


def replaced(made: Call, own: Object, old: Value | None, new: Value) -> None:
    """A module gets a part instead of another one; `old` is what stands for all its parameters if its parts are out of sight."""
    is_part = old is not None and old is not new and any(map(_is_part, options(old)))
    if is_part and not any(_wraps(one, old) for one in options(new)):
        made.emit("replace", own, old=old, new=new)


def _wraps(new: Value, old: Value | None) -> bool:
    """Whether a module has another one as a part of its own, whose parameters then are among its own."""
    return isinstance(new, Object) and is_module(new) and any(one is old for _, one, _ in children(new))


@method(MODULE, "__followed__")
def _followed(made: Call) -> Value:
    """A variable that has held a module gets what a call gives."""
    if made.machine.optimizers and is_module(made.args[1]):
        made.emit("replace", made.args[1], old=made.args[0], new=made.args[1])
    return NONE


def added(made: Call, own: Object, *new: Value) -> None:
    """A module gets further parts while there are optimizers; not those that a module makes itself of, as it is new to them anyway."""
    machine = made.machine
    is_made = any(
        one.function is not None and one.function.name == "__init__" and is_module(one.receiver or NONE)
        for one in machine.frames
    )
    if machine.optimizers and not is_made and any(map(_is_part, new)):
        made.emit("add", own, new=new)


def replaced_out_of_sight(made: Call, part: Value, new: Value) -> None:
    """Something that is a part of a model, perhaps with other parts in between, gets a part."""
    if made.machine.optimizers and _is_part(new):
        for (model, _), unknown in made.machine.missing.items():
            pending = [unknown] if is_module(model) else []
            while pending:
                one = pending.pop()
                pending += [each for each in one.parts.values() if isinstance(each, Unknown)]
                if one is part:
                    renewed(made, model, "new parameters")
                    return


def switch(made: Call, subject: Value, *, on: bool) -> None:
    """Parameters begin to require gradients, or no longer do, perhaps in a function that is called for it."""
    calls = tuple(frame.call for frame in made.machine.frames if frame.call is not None)
    made.emit("unfreeze" if on else "freeze", subject, calls=calls)


def renewed(made: Call, model: Value, what: str) -> None:
    """Parameters of a model are others from here on."""
    for one in options(model):
        if made.machine.optimizers and isinstance(one, Object) and is_module(one):
            made.emit("renew", one, what=what, parameters=held(one).values)


def _is_part(value: Value) -> bool:
    return is_module(value) or is_parameter(value)


@method(MODULE, "__outline__")
def _outline(made: Call) -> Value:
    cls = made.own(Class)
    known = made.machine.instances.get(cls)
    if known is not None and not (group := held(known)).parameters and group.complete:
        return Object(cls, made.place, {"training": TRUE})  # none of its class has parameters
    return distant(made.machine, made, cls)


@method(MODULE, "__init__")
def _init(made: Call) -> Value:
    return NONE


@method(MODULE, "__call__", "__runs__")
def _call(made: Call) -> Value:
    own, machine = made.own(), made.machine
    training, recording = own.fields.get("training", TRUE), machine.mode("recording")
    is_known = isinstance(training, Known) and isinstance(training.value, bool)
    output = ModelCall(made.place, training.value if is_known else None, recording)
    event = made.emit(
        "forward",
        own,
        training=training,
        recording=recording,
        in_sight=machine.mode("in sight"),
        within=tuple((one, one.fields.get("training", TRUE)) for one in machine.layers),
        evaluating_since=evaluating_since(own),
        callers=() if machine.layers else _callers(machine),
        called_at=() if machine.layers else _called_at(machine),
        given=tuple(one.facts.graph.starts for one in tensors_in(made.values()) if one.facts.graph.starts),
        call=output,
        wrapper=own.fields.get(WRAPPED_BY),
        over=machine.passes[-1].over if machine.passes else None,
        inputs=(*made.args[1:], *made.kwargs.values()),
    )
    result = _output(own, made)
    if not machine.layers:
        if own.cls is CRITERION:
            outputs.used(made, outputs.COMPARED, made.values())
        outputs.mark(made, result, output)
    event.detail["starts"] = [
        start for one in tensors_in(outputs.with_fields(result)) for start in one.facts.graph.starts
    ]
    if isinstance(result, Tensor):
        event.detail["output"] = result.facts
        if machine.optimizers and not machine.layers and result.facts.requires is not False:
            event.detail["before"] = gradients.seen(machine, roots_of(result))
    return result


def _callers(machine: Machine) -> tuple[Object, ...]:
    """The objects whose methods run now, the outermost first."""
    return tuple(one.receiver for one in machine.frames if isinstance(one.receiver, Object))


def _called_at(machine: Machine) -> tuple[Place, ...]:
    """Where the functions of the program that run now are called, the outermost first."""
    return tuple(one.call for one in machine.frames if one.call is not None and one.site is None)


def _output(own: Object, made: Call) -> Value:
    """What `forward` gives."""
    machine = made.machine
    forward = own.fields.get("forward") or own.cls.find("forward")
    args = made.args if "forward" not in own.fields else made.args[1:]
    outlined = (
        (machine.outline or machine.is_late)
        and isinstance(forward, Function)
        and forward.node in machine.called
    )
    if forward in (None, DISTANT.find("forward")) or own.cls is DISTANT or outlined:
        parts = held(own)
        further = [Unknown("a parameter out of sight")] if parts.open else []
        given = (*made.args[1:], *made.kwargs.values())
        output = bundle(computed(machine, [*parts.values, *further, *given], made.place))
        known = any(isinstance(one, Tensor) and BY_NAME not in one.fields for one in given)
        if BY_NAME in own.fields and not known:  # it may be a class, which gives a model
            output.fields[BY_NAME] = TRUE
        return output
    if not machine.layers:
        machine.around_layers = len(machine.passes)
    machine.layers.append(own)
    try:
        return call(machine, forward, args, made.kwargs, made.node, loose=made.loose)
    finally:
        machine.layers.pop()


@method(MODULE, "train", "eval")
def _mode(made: Call) -> Value:
    own = made.own()
    wants = made.argument(1, "mode", True) if made.name != "eval" else FALSE
    made.emit({TRUE: "train", FALSE: "eval"}.get(wants, "mode"), own)  # type: ignore[call-overload]
    set_mode(made.machine, own, wants, made)
    return own


def set_mode(
    machine: Machine, module: Object, wants: Value, made: Call, seen: set[int] | None = None
) -> None:
    """Put a module and all below it into a mode; a class with a `train` of its own decides for itself."""
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen.add(id(module))
    machine.state.write(
        module.fields, "training", wants if isinstance(wants, Known) else Unknown("the mode", "bool")
    )
    switched(machine, module, wants, made.place)

    def change(child: Object) -> None:
        own = child.cls.find("train")
        if isinstance(own, Function):
            call(machine, own, [child, wants], {}, made.node)
        else:
            set_mode(machine, child, wants, made, seen)

    parts = [
        (one, sure or machine.are_alternatives(options(module.fields[name])))
        for name, one, sure in children(module)
    ]
    each_held(machine, parts, change)


@method(
    MODULE,
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_load_state_dict_post_hook",
    "compile",
    "extra_repr",
    "register_backward_hook",
    "register_full_backward_pre_hook",
    "register_load_state_dict_pre_hook",
    "register_state_dict_post_hook",
    "register_state_dict_pre_hook",
    "set_extra_state",
)
def _registered(made: Call) -> Value:
    return Unknown("a handle", "handle")


@method(MODULE, "__copied__")
def _copied(made: Call) -> Value:
    copied = _copy(made.own(), {}, made)
    made.emit("copy", copied, of=made.own())
    return copied


def _copy(value: Value, done: dict[int, Value], made: Call) -> Value:
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, Tensor):
        done[id(value)] = Tensor(value.facts, value.made, value.cls)
    elif is_module(value):
        assert isinstance(value, Object)
        copied = done[id(value)] = Object(value.cls, made.place, {})
        copied.fields.update({name: _copy(one, done, made) for name, one in value.fields.items()})
    elif isinstance(value, Sequence):
        done[id(value)] = value  # if it is inside itself
        items = tuple(_copy(one, done, made) for one in value.items)
        done[id(value)] = Sequence(value.cls, items, value.rest, made.place)
    elif isinstance(value, Table):
        done[id(value)] = value
        fields = {name: _copy(one, done, made) for name, one in value.fields.items()}
        done[id(value)] = Table(value.cls, made.place, fields)
    elif isinstance(value, Choice):
        return Choice(tuple(_copy(one, done, made) for one in value.options))
    else:
        return value
    return done[id(value)]


@method(MODULE, "__handed_over__")
def _handed_over(made: Call) -> Value:
    """Code out of sight may put it into another mode, but hardly does. It may train it, and compute gradients."""
    own = made.own()
    group = held(own)
    made.emit("hand over", own, by=made.args[1])
    parameters = [one for _, one in group.parameters]
    gradients.perhaps_computed_of(made.machine, parameters, complete=group.complete)
    return NONE


@method(DISTANT, "resize_token_embeddings")
def _resized(made: Call) -> Value:
    renewed(made, made.own(), "new embeddings")
    return Unknown("embeddings")


@method(UNSEEN, "unwrap_model")
def _unwrapped(made: Call) -> Value:
    """What something of a library has wrapped for several devices."""
    return made.argument(1, "model")


@attribute_of(DISTANT, "config", "device", "dtype")
def _of_distant(made: Call) -> Value:
    return Unknown("it is out of sight")


@method(DISTANT, "forward")
def _forward_of_distant(made: Call) -> Value:
    return _call(made)


@attribute_of(DISTANT, "module")
def _wrapped(made: Call) -> Value:
    """What is in it, if it is wrapped for several devices: that has the same parameters."""
    return made.args[0]
