"""The layers of torch that do another thing in evaluation mode."""

from typing import Any

from ta_lint.dryrun.machine.calling import STUB
from ta_lint.dryrun.stubs.torch.layers import DROPOUTS
from ta_lint.dryrun.values import Known, Object


def depends_on_mode(layer: Object) -> bool:
    """Whether a layer of torch does another thing in evaluation mode, or perhaps does."""
    name = layer.cls.name.rpartition(".")[2]
    if name in DROPOUTS:
        return bool(_given(layer, "p", True))
    averages = name.startswith(("BatchNorm", "LazyBatchNorm", "SyncBatchNorm"))
    has_own = any(one.made is not None and one.made.file.endswith(STUB) for one in layer.cls.mro)
    drops = _given(layer, "dropout", False) if has_own else False  # recurrent layers and attention
    return name == "RReLU" or bool(drops) or bool(_given(layer, "track_running_stats", averages))


def _given(layer: Object, argument: str, default: bool) -> Any:
    """What a layer was given; True if that is not known."""
    value = layer.fields.get(argument, Known(default))
    return value.value if isinstance(value, Known) else True
