"""What starts a program with a configuration: `@hydra.main` calls its function with one that is read from files."""

import ast

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import stub
from ta_lint.dryrun.values import DATA, Function, Native, Unknown, Value


@stub("hydra.main", "pyrallis.wrap", "draccus.wrap")
def _main(made: Call) -> Value:
    """The decorator: the function may be called without its configuration."""
    return _CONFIGURED


def _configured(made: Call) -> Value:
    function = made.args[0]
    if isinstance(function, Function) and not isinstance(function.node, ast.Lambda):
        first = next((one.arg for one in function.node.args.args), None)
        if first is not None:
            function.defaults = {**function.defaults, first: Unknown("the configuration", DATA)}
    return function


_CONFIGURED = Native("hydra.main", _configured)
