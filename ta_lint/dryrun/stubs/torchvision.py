"""`torchvision`: datasets, transforms of images, operations on boxes. Its models are in `pretrained`."""

from ta_lint.core.datasets import samples_of
from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.counts import LENGTH
from ta_lint.dryrun.machine.library import family, method, new_class, stub, tuple_of
from ta_lint.dryrun.stubs.python.functions import show
from ta_lint.dryrun.stubs.torch import dtypes
from ta_lint.dryrun.stubs.torch.data import DATASET
from ta_lint.dryrun.stubs.torch.modules import MODULE
from ta_lint.dryrun.stubs.torch.rows import CUTS, FOLLOWS, Row, define
from ta_lint.dryrun.stubs.torch.shapes import unknown
from ta_lint.dryrun.stubs.torch.tensors import Facts, Tensor, computed, tensors_in
from ta_lint.dryrun.values import (
    DATA,
    NONE,
    Hidden,
    Known,
    Native,
    Unknown,
    Value,
    is_data,
    join,
)

SAMPLES = Hidden("how many samples a dataset has")

# -- transforms ----------------------------------------------------------------------------------------

TRANSFORM = new_class(
    "torchvision.transforms.Transform", "torchvision.transforms.v2.Transform", bases=(MODULE,)
)
_TO_TENSOR = frozenset(
    "Normalize PILToTensor RandomErasing ToDtype ToImage ToTensor normalize pil_to_tensor to_image to_tensor".split()
)
_TO_IMAGE = frozenset({"ToPILImage", "to_pil_image"})
_IN_ORDER = frozenset({"Compose", "RandomApply", "RandomChoice", "RandomOrder"})


def changed(made: Call, value: Value, name: str) -> Value:
    """An image after a transform of this name."""
    if name in _TO_IMAGE:
        return Unknown("an image", DATA)
    if any(True for _ in tensors_in([value])):
        return computed(made.machine, [value], made.place)
    if name in _TO_TENSOR:
        return Tensor(Facts(dtype="float32" if name in ("ToTensor", "to_tensor") else None), made.place)
    return Unknown("an image", DATA) if is_data(value) else Unknown("an image")


def _transform(name: str) -> Value | None:
    """A class of a transform, or a function of `torchvision.transforms.functional`."""
    last = name.rpartition(".")[2]
    if last.startswith("_") or last in ("functional", "transforms", "v2"):
        return None
    if last[:1].islower():
        return (
            Native(name, lambda made: changed(made, made.argument(0, "img"), last))
            if ".functional." in name
            else None
        )
    if last in ("InterpolationMode", "AutoAugmentPolicy"):
        return None
    cls = new_class(name, bases=(TRANSFORM,))

    def init(made: Call) -> Value:
        own = made.own()
        if len(made.args) > 1:
            made.machine.state.write(own.fields, "transforms", made.args[1])
        return NONE

    def run(made: Call) -> Value:
        own, value = made.own(), made.argument(1, "img")
        first = own.fields.get("transforms", NONE)
        if last == "Lambda":
            return call(made.machine, first, [value], {}, made.node)
        if last not in _IN_ORDER:
            return changed(made, value, last)
        steps, rest = iteration.collected(made.machine, first, made.node)
        result = value
        for step in (*steps, *([] if rest is None else [rest])):
            after = call(made.machine, step, [result], {}, made.node)
            result = after if last == "Compose" else join(result, after)
        return result

    method(cls, "__init__")(init)
    method(cls, "__call__")(run)
    return cls


family("torchvision.transforms.", _transform)

# -- datasets ------------------------------------------------------------------------------------------


def _chosen(made: Call, samples: dict[bool | str, int]) -> Value:
    """How many samples the part of a dataset has that this call chooses."""
    default = next(iter(samples), None)
    choice = made.constant(2, "train" if default is True else "split", default)
    return Known(samples[choice]) if choice in samples else Unknown(LENGTH, "int")


def _dataset(name: str) -> Value | None:
    """A dataset of images with labels."""
    last = name.rpartition(".")[2]
    if not last[:1].isupper() or name.count(".") != 2:
        return None
    cls = new_class(name, bases=(DATASET,))

    def init(made: Call) -> Value:
        own = made.own()
        for key in ("target_transform", "train", "transform"):
            made.machine.state.write(own.fields, key, made.kwargs.get(key, NONE))
        made.machine.state.write(own.fields, SAMPLES, _chosen(made, samples_of(name)))
        return NONE

    def length(made: Call) -> Value:
        own = made.own()
        cut = "data" in own.fields or "targets" in own.fields  # the program has put its own ones there
        return Unknown(LENGTH, "int") if cut else own.fields.get(SAMPLES, Unknown(LENGTH, "int"))

    def sample(made: Call) -> Value:
        own = made.own()
        image: Value = Unknown("an image", DATA)
        transform = own.fields.get("transform", NONE)
        if transform != NONE:
            image = call(made.machine, transform, [image], {}, made.node)
        return tuple_of([image, Unknown("a label", "int")])

    method(cls, "__init__")(init)
    method(cls, "__getitem__")(sample)
    method(cls, "__len__")(length)
    method(cls, "__getattr__")(lambda made: Unknown(f"the {made.constant(1, 'name')} of a dataset", DATA))
    return cls


family("torchvision.datasets.", _dataset)

# -- boxes and pictures --------------------------------------------------------------------------------

OPERATIONS = ("torchvision.ops.",)
define((
    Row(FOLLOWS, unknown, dtypes.unknown, """
        box_area box_convert box_iou clip_boxes_to_image complete_box_iou complete_box_iou_loss deform_conv2d distance_box_iou
        distance_box_iou_loss drop_block2d generalized_box_iou generalized_box_iou_loss ps_roi_align ps_roi_pool roi_align roi_pool
        sigmoid_focal_loss stochastic_depth
    """, OPERATIONS),
    Row(CUTS, unknown, dtypes.int64, "batched_nms nms remove_small_boxes", OPERATIONS),
    Row(CUTS, unknown, dtypes.unknown, "masks_to_boxes", OPERATIONS),
    Row(FOLLOWS, unknown, dtypes.unknown, "make_grid", ("torchvision.utils.",)),
    Row(CUTS, unknown, dtypes.unknown, "draw_bounding_boxes draw_keypoints draw_segmentation_masks flow_to_image", ("torchvision.utils.",)),
    Row(CUTS, unknown, dtypes.unknown, "decode_image decode_jpeg decode_png read_file read_image", ("torchvision.io.",)),
))  # fmt: skip


@stub(
    "torchvision.utils.save_image",
    "torchvision.io.write_jpeg",
    "torchvision.io.write_png",
    "torchvision.io.write_video",
)
def _saved(made: Call) -> Value:
    for value in made.args[:1]:
        show(made, value)
    return NONE


@stub("torchvision.set_image_backend", "torchvision.disable_beta_transforms_warning")
def _set(made: Call) -> Value:
    return Known(None)
