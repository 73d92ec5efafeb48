"""Models that others have made: modules of which nobody knows the layers."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import family, method, new_class, stub
from ta_lint.dryrun.stubs.torch import outputs
from ta_lint.dryrun.stubs.torch.modules import DISTANT, HAS_BATCH_NORMS, distant
from ta_lint.dryrun.values import FALSE, NONE, Class, Known, Native, Object, Unknown, Value

WITH_BATCH_NORMS = tuple(
    "densenet efficientnet googlenet inception mnasnet mobilenet regnet resnet resnext shufflenet wide_resnet".split()
)
"""How the names of torchvision's networks with batch norms begin; those of VGG end with `_bn`."""


def _model(made: Call) -> Value:
    model = distant(made.machine, made)
    has_norms = made.name.startswith(WITH_BATCH_NORMS) or made.name.endswith("_bn")
    if made.function.startswith("torchvision.models.") and has_norms:
        model.fields[HAS_BATCH_NORMS] = Known(made.name)
    if any(made.given(99, name) not in (None, NONE, FALSE) for name in ("weights", "pretrained")):
        made.emit("pretrained", model)
    return model


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


@stub("pytorch_fid.inception.InceptionV3", "pytorch_fid.InceptionV3")
def _of_fid(made: Call) -> Value:
    """A network that comes with its weights."""
    model = distant(made.machine, made)
    model.fields[HAS_BATCH_NORMS] = Known(made.name)
    made.emit("pretrained", model)
    return model


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


GRAPH_MODELS = frozenset("EdgeCNN GAT GCN GIN GraphSAGE MLP PNA".split())


def _of_graphs(name: str) -> Value | None:
    """A layer for graphs, such as `torch_geometric.nn.GCNConv`, or a network of them."""
    last = name.rpartition(".")[2]
    is_layer = last[:1].isupper() and (last.endswith("Conv") or last in GRAPH_MODELS)
    if not is_layer:
        return None
    cls = new_class(name, bases=(DISTANT,))
    method(cls, "__new__")(_layer)
    return cls


def _layer(made: Call) -> Value:
    return distant(made.machine, made, made.own(Class))


family("torch_geometric.nn.", _of_graphs)
family("dgl.nn.", _of_graphs)


def _tokenizer(name: str) -> Value | None:
    """A tokenizer, a processor or a collator of batches: what it gives leads to no parameter."""
    last = name.rpartition(".")[2]
    ends = ("Tokenizer", "TokenizerFast", "Processor", "ImageProcessorFast", "FeatureExtractor")
    return TOKENIZER if last.startswith("DataCollator") or last.endswith(ends) else None


TOKENIZER = new_class("transformers.PreTrainedTokenizer")


@method(TOKENIZER, "__new__", "from_pretrained")
def _made_tokenizer(made: Call) -> Value:
    return Object(TOKENIZER, made.place)


@method(TOKENIZER, "__init__")
def _begin(made: Call) -> Value:
    return NONE


@method(TOKENIZER, "__call__", "pad", "batch_encode_plus", "encode_plus", "encode", "apply_chat_template")
def _tokens(made: Call) -> Value:
    return Unknown("tokens", "numbers")


@method(TOKENIZER, "__getattr__")
def _of_tokenizer(made: Call) -> Value:
    """Its methods give text, or numbers, of the numbers that they get."""
    name = f"{made.constant(1, 'name')} of a tokenizer"

    def run(inner: Call) -> Value:
        outputs.used(inner, outputs.NUMBERS, inner.values())
        return Unknown(name, "numbers")

    return Native(name, run) if str(made.constant(1, "name")).endswith("decode") else Unknown(name, "numbers")


family("transformers.", _tokenizer)
