"""Bars that show the progress of a loop: `tqdm(loader)` gives what the loader gives."""

from ta_lint.dryrun.machine import iteration, library
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import keeps, list_of, method, new_class, stub
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.stubs.python.functions import show
from ta_lint.dryrun.values import DATA, NONE, Object, Unknown, Value

BAR = new_class(
    "tqdm.tqdm", "tqdm.asyncio.tqdm", "tqdm.auto.tqdm", "tqdm.autonotebook.tqdm", "tqdm.notebook.tqdm", "tqdm.notebook.tqdm_notebook",
    "tqdm.rich.tqdm", "tqdm.std.tqdm", "tqdm.tqdm_notebook",
)  # fmt: skip


keeps(BAR, "iterable")


@method(BAR, "__iter__")
def _elements(made: Call) -> Value:
    own = made.own()
    return _over(made, own.fields.get("iterable", NONE))


def _over(made: Call, value: Value) -> Value:
    found = iteration.streamed(made.machine, value, made.node)
    return found if isinstance(found, Stream) else list_of(*found)


@method(BAR, "__len__")
def _length(made: Call) -> Value:
    own = made.own()
    return call(made.machine, library.find("builtins.len"), [own.fields.get("iterable", NONE)], {}, made.node)


@method(BAR, "__bool__")
def _truth(made: Call) -> Value:
    return Unknown("whether a bar has a length", "bool")


@method(BAR, "set_description", "set_description_str", "set_postfix", "set_postfix_str")
def _shown(made: Call) -> Value:
    for value in (*made.args[1:], *made.kwargs.values()):
        show(made, value)
    return NONE


@method(BAR, "__exit__", "clear", "close", "display", "refresh", "reset", "unpause", "update")
def _moved(made: Call) -> Value:
    return NONE


@method(BAR, "__getattr__")
def _state(made: Call) -> Value:
    return Unknown(f"the {made.constant(1, 'name')} of a bar", DATA)


@method(BAR, "__class_getattr__")
def _of_class(made: Call) -> Value:
    return library.find(f"tqdm.{made.constant(1, 'name')}")


@stub("tqdm.write")
def _write(made: Call) -> Value:
    for value in made.values():
        show(made, value)
    return NONE


@stub("tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange", "tqdm.notebook.tnrange")
def _range(made: Call) -> Value:
    numbers = call(made.machine, library.find("builtins.range"), made.args, {}, made.node)
    return Object(BAR, made.place, {"iterable": numbers})


@stub(
    "rich.progress.track", "fastprogress.progress_bar", "fastprogress.master_bar", "alive_progress.alive_it"
)
def _track(made: Call) -> Value:
    return _over(made, made.argument(0, "sequence"))
