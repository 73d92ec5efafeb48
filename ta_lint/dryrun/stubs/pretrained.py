"""Models that others have made: modules of which nobody knows the layers."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import family, method, new_class, stub
from ta_lint.dryrun.stubs.torch.modules import DISTANT, distant
from ta_lint.dryrun.values import Native, Value


def _model(made: Call) -> Value:
    return distant(made.machine, made)


def _of_torchvision(name: str) -> Value | None:
    """`torchvision.models.resnet18`, and `torchvision.models.segmentation.fcn_resnet50`."""
    last = name.rpartition(".")[2]
    return (
        Native(name, _model)
        if last[:1].islower() and any(one.isdigit() or one == "_" for one in last)
        else None
    )


family("torchvision.models.", _of_torchvision)
stub(
    "timm.create_model",
    "torch.hub.load",
    "torchvision.models.get_model",
    "segmentation_models_pytorch.create_model",
)(_model)


def _of_diffusers(name: str) -> Value | None:
    """A class of a model, such as `diffusers.UNet2DModel`: it is loaded or made, and its layers are out of sight."""
    last = name.rpartition(".")[2]
    if (
        not last[:1].isupper()
        or not ("Model" in last or "For" in last)
        or last.endswith(("Config", "Output", "Tokenizer"))
    ):
        return None
    cls = new_class(name, bases=(DISTANT,))
    method(cls, "__new__", "from_pretrained", "from_config")(_model)
    return cls


family("diffusers.", _of_diffusers)
