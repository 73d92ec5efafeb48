"""For how many of its steps a learning rate schedule is laid out."""

import libcst as cst

from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import argument, spreads

# The arguments with the number of steps that a schedule is laid out for.
_TORCH = {
    "CosineAnnealingLR": (("T_max", 1),),
    "LinearLR": (("total_iters", 3),),
    "OneCycleLR": (("total_steps", 2), ("steps_per_epoch", 4)),
    "PolynomialLR": (("total_iters", 1),),
}
_TRANSFORMERS = (("num_training_steps", 2),)
_GET_SCHEDULER = {
    "transformers": (("num_training_steps", 3),),
    "diffusers": (("num_training_steps", 4),),
}


def length(made: cst.Call, names: Names) -> cst.BaseExpression | None:
    """The argument that says for how many steps a schedule is laid out."""
    called = names.qualified(made.func) or ""
    package, _, name = called.rpartition(".")
    if spreads(made):
        return None
    if package == "torch.optim.lr_scheduler":
        given = _TORCH.get(name, ())
    elif name == "get_scheduler":
        given = _GET_SCHEDULER.get(called.partition(".")[0], ())
    elif (
        called.startswith(("transformers.", "diffusers.")) and name.startswith("get_") and "schedule" in name
    ):
        given = _TRANSFORMERS
    else:
        return None
    found = (argument(made, *each) for each in given)
    return next((value for value in found if value is not None), None)
