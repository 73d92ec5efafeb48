"""Saving and loading: `torch.save` and `torch.load`."""

from collections.abc import Iterator

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import UNSEEN, method, stub
from ta_lint.dryrun.sources import FromFile, LoadedFile
from ta_lint.dryrun.stubs.torch.modules import is_module
from ta_lint.dryrun.stubs.torch.scaling import SCALER
from ta_lint.dryrun.stubs.torch.state_dicts import STATE as STATE_OF_MODULE
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER, SCHEDULER, STATE
from ta_lint.dryrun.values import DATA, NONE, Object, Place, Table, Unknown, Value, each_in, options

STATES = (STATE, STATE_OF_MODULE)
STATEFUL = (OPTIMIZER, SCHEDULER, SCALER)


class Checkpoint:
    """What a file gets: the objects whose states it has under each key, None for the file itself, and whether these are all keys."""

    def __init__(self, saved: Value, place: Place) -> None:
        self.owners: dict[str | None, tuple[Value, ...]] = {}
        self.keys: set[str] = set()
        self.is_whole = True
        self.place = saved.made if isinstance(saved, Table) and saved.made is not None else place
        self._add(None, saved, set())

    def _add(self, key: str | None, value: Value, seen: set[tuple[str | None, int]]) -> None:
        """Of a dictionary that is in it twice, once for each key: of twenty in one another there are a million ways in."""
        if isinstance(value, Table):
            if (key, id(value)) in seen:
                return
            seen.add((key, id(value)))
            for name, part in value.entries():
                if isinstance(name, str):
                    self.keys.add(name)
                self._add(name if isinstance(name, str) else key, part, seen)
            if value.rest is not None:
                self.is_whole = False
                self._add(key, value.rest, seen)
            return
        owners = tuple(_owners(value))
        if owners:
            self.owners[key] = (*self.owners.get(key, ()), *owners)
        elif key is None:
            self.is_whole = False


_DISTRIBUTED = "torch.distributed.checkpoint"


@stub(*(f"{_DISTRIBUTED}.{room}{name}" for room in ("", "state_dict_saver.") for name in ("save", "async_save", "save_state_dict")))  # fmt: skip
def _save_objects(made: Call) -> Value:
    """Of objects that have a state, such as an optimizer, or of others that wrap one: it asks them for it."""
    objects = made.argument(0, "state_dict")
    content = Checkpoint(objects, made.place)
    for key, one in objects.entries() if isinstance(objects, Table) else ():
        content.owners[key] = tuple(_inside(one))
    content.is_whole = isinstance(objects, Table)
    owners = {one for several in content.owners.values() for one in several}
    given = (
        event.place for event in made.machine.events if event.action == "unknown" and event.subject in owners
    )
    content.place = next(given, content.place)  # what wraps an optimizer is made beside the others
    made.emit("save", objects, file=made.argument(99, "checkpoint_id"), content=content, objects=True)
    return Unknown("what is saved")


@stub(*(f"{_DISTRIBUTED}.{room}{name}" for room in ("", "state_dict_loader.") for name in ("load", "load_state_dict")))  # fmt: skip
def _load_objects(made: Call) -> Value:
    objects = made.argument(0, "state_dict")
    file = LoadedFile(made.argument(99, "checkpoint_id"), made.place)
    made.emit("load", None, file=file.name, read=file)
    for key, one in objects.entries() if isinstance(objects, Table) else ():
        for owner in _inside(one):
            state = Unknown("what the file holds", DATA, source=FromFile(file).part((key,)))
            made.emit("load", owner, state=state)
    return NONE


def _inside(value: Value, depth: int = 3) -> Iterator[Value]:
    """The models, optimizers and schedules that a value is, or that it was made of."""
    for one in options(value):
        if is_module(one) or (isinstance(one, Object) and any(map(one.cls.is_a, STATEFUL))):
            yield one
            continue
        parts = (
            one.got if isinstance(one, Unknown) else one.fields.values() if isinstance(one, Object) else ()
        )
        for part in parts if depth else ():
            if isinstance(part, Value):
                yield from _inside(part, depth - 1)


def _owners(value: Value) -> Iterator[Value]:
    """The objects whose state a value is, or is made of."""
    for one in each_in((value,)):
        if isinstance(one, Object) and one.cls in STATES:
            yield from options(one.fields["of"])
        elif isinstance(one, Object) and is_module(one):
            yield one


@stub("torch.save")
def _save(made: Call) -> Value:
    saved = made.argument(0, "obj")
    made.emit("save", saved, file=made.argument(1, "f"), content=Checkpoint(saved, made.place))
    return NONE


@stub("torch.load")
def _load(made: Call) -> Value:
    file = LoadedFile(made.argument(0, "f"), made.place)
    made.emit("load", None, file=file.name, read=file)
    return Unknown("what the file holds", DATA, source=FromFile(file))


@method(UNSEEN, "load_state_dict")
def _some_load(made: Call) -> Value:
    made.emit("load", made.args[0], state=made.argument(1, "state_dict"))
    return Unknown("what is loaded")
