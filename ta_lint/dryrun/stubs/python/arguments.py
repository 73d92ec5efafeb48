"""`argparse`: the options of a script, with their defaults and types."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import (
    DICT,
    OBJECT,
    find,
    list_of,
    method,
    new_class,
    tuple_of,
)
from ta_lint.dryrun.values import (
    DATA,
    NONE,
    Class,
    Known,
    Object,
    Option,
    Table,
    Unknown,
    Value,
)

PARSER = new_class("argparse.ArgumentParser")


@method(PARSER, "__init__")
def _parser(made: Call) -> Value:
    own = made.own()
    made.machine.state.write(own.fields, "arguments", Table(DICT, made.place, {}))
    return NONE


@method(PARSER, "add_subparsers")
def _subparsers(made: Call) -> Value:
    """The options of each command are added to those of all."""
    return Object(COMMANDS, made.place, {"parser": made.args[0]})


COMMANDS = Class("argparse._SubParsersAction", (OBJECT,))


@method(COMMANDS, "add_parser")
def _command(made: Call) -> Value:
    own = made.own()
    return own.fields["parser"]  # type: ignore[no-any-return]


@method(PARSER, "error", "exit")
def _ends(made: Call) -> Value:
    made.machine.throw(find("builtins.SystemExit"))


@method(PARSER, "format_help", "format_usage", "print_help", "print_usage")
def _help(made: Call) -> Value:
    return Unknown("the help of a script", "str")


NAMESPACE = new_class("argparse.Namespace", "types.SimpleNamespace")


@method(NAMESPACE, "__init__")
def _namespace(made: Call) -> Value:
    own = made.own()
    for name, value in made.kwargs.items():
        made.machine.state.write(own.fields, name, value)
    return NONE


@method(PARSER, "add_argument")
def _add_argument(made: Call) -> Value:
    own = made.own()
    flags = [one.value for one in made.args[1:] if isinstance(one, Known) and isinstance(one.value, str)]
    if not flags:
        return NONE
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    name = made.constant(99, "dest", long.lstrip("-").replace("-", "_"))
    kind = made.kwargs.get("type")
    type_name = kind.name if isinstance(kind, Class) and kind.name in ("int", "float", "str") else DATA
    action = made.constant(99, "action")
    if action in ("store_true", "store_false"):
        value: Value = Unknown(f"the option {long}", "bool")
    else:
        default = made.kwargs.get("default", NONE)
        value = (
            Option(default.value)
            if isinstance(default, Known) and default != NONE
            else Unknown(f"the option {long}", type_name)
        )
    made.machine.state.write(own.fields["arguments"].fields, name, value)
    return NONE


@method(PARSER, "parse_args", "parse_known_args")
def _parse(made: Call) -> Value:
    own = made.own()
    namespace = Object(NAMESPACE, made.place, dict(own.fields["arguments"].fields))
    return tuple_of([namespace, list_of(())]) if made.name == "parse_known_args" else namespace


@method(PARSER, "add_argument_group", "add_mutually_exclusive_group")
def _group(made: Call) -> Value:
    return made.args[0]


@method(PARSER, "set_defaults")
def _defaults(made: Call) -> Value:
    own = made.own()
    for name, value in made.kwargs.items():
        made.machine.state.write(own.fields["arguments"].fields, name, value)
    return NONE
