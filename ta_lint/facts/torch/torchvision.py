"""What torchvision has replaced, and by what."""

from typing import NamedTuple

from ta_lint.core.lazy import regex

# The model builders of torchvision 0.13, each by the name of its weights; the builder's is the same in lower case.
_BUILDERS = {
    "": (
        "AlexNet ConvNeXt_Tiny ConvNeXt_Small ConvNeXt_Base ConvNeXt_Large DenseNet121 DenseNet161 DenseNet169 "
        "DenseNet201 EfficientNet_B0 EfficientNet_B1 EfficientNet_B2 EfficientNet_B3 EfficientNet_B4 "
        "EfficientNet_B5 EfficientNet_B6 EfficientNet_B7 EfficientNet_V2_S EfficientNet_V2_M EfficientNet_V2_L "
        "GoogLeNet Inception_V3 MaxVit_T MNASNet0_5 MNASNet0_75 MNASNet1_0 MNASNet1_3 MobileNet_V2 "
        "MobileNet_V3_Large MobileNet_V3_Small RegNet_X_400MF RegNet_X_800MF RegNet_X_1_6GF RegNet_X_3_2GF "
        "RegNet_X_8GF RegNet_X_16GF RegNet_X_32GF RegNet_Y_400MF RegNet_Y_800MF RegNet_Y_1_6GF RegNet_Y_3_2GF "
        "RegNet_Y_8GF RegNet_Y_16GF RegNet_Y_32GF ResNet18 ResNet34 ResNet50 ResNet101 ResNet152 "
        "ResNeXt50_32X4D ResNeXt101_32X8D ResNeXt101_64X4D Wide_ResNet50_2 Wide_ResNet101_2 ShuffleNet_V2_X0_5 "
        "ShuffleNet_V2_X1_0 ShuffleNet_V2_X1_5 ShuffleNet_V2_X2_0 SqueezeNet1_0 SqueezeNet1_1 Swin_T Swin_S "
        "Swin_B Swin_V2_T Swin_V2_S Swin_V2_B VGG11 VGG11_BN VGG13 VGG13_BN VGG16 VGG16_BN VGG19 VGG19_BN "
        "ViT_B_16 ViT_B_32 ViT_L_16 ViT_L_32"
    ),
    "detection": (
        "FasterRCNN_ResNet50_FPN FasterRCNN_ResNet50_FPN_V2 FasterRCNN_MobileNet_V3_Large_FPN "
        "FasterRCNN_MobileNet_V3_Large_320_FPN FCOS_ResNet50_FPN KeypointRCNN_ResNet50_FPN "
        "MaskRCNN_ResNet50_FPN MaskRCNN_ResNet50_FPN_V2 RetinaNet_ResNet50_FPN RetinaNet_ResNet50_FPN_V2 "
        "SSD300_VGG16 SSDLite320_MobileNet_V3_Large"
    ),
    "optical_flow": "Raft_Large Raft_Small",
    "segmentation": (
        "DeepLabV3_ResNet50 DeepLabV3_ResNet101 DeepLabV3_MobileNet_V3_Large FCN_ResNet50 FCN_ResNet101 "
        "LRASPP_MobileNet_V3_Large"
    ),
    "video": "MC3_18 MViT_V1_B MViT_V2_S R2Plus1D_18 R3D_18 S3D Swin3D_T Swin3D_S Swin3D_B",
}
_MEMBERS = {
    "": "IMAGENET1K_V1",
    "detection": "COCO_V1",
    "segmentation": "COCO_WITH_VOC_LABELS_V1",
    "video": "KINETICS400_V1",
}
_FLOW_MEMBERS = {"raft_large": "C_T_SKHT_V2", "raft_small": "C_T_V2"}

# Builders without one certain set of weights: there are none, or they follow from another argument.
_OTHERS = {
    "detection": "mobilenet_backbone resnet_fpn_backbone",
    "": "regnet_y_128gf vit_h_14",
    "quantization": (
        "googlenet inception_v3 mobilenet_v2 mobilenet_v3_large resnet18 resnet50 resnext101_32x8d resnext101_64x4d "
        "shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0"
    ),
}

# The weights of a backbone, by what the name of a builder holds.
_BACKBONES = {
    "resnet101": "ResNet101_Weights.IMAGENET1K_V1",
    "resnet50": "ResNet50_Weights.IMAGENET1K_V1",
    "mobilenet_v3_large": "MobileNet_V3_Large_Weights.IMAGENET1K_V1",
    "vgg16": "VGG16_Weights.IMAGENET1K_FEATURES",
}

_BUILDER = regex(
    r"torchvision\.models\.(?:(detection|optical_flow|quantization|segmentation|video)\.)?(?:\w+\.)?(\w+)"
)


class Builder(NamedTuple):
    """A function that builds a model: the full names of the weights that `pretrained=True` stands for."""

    weights: str | None
    backbone: str | None


def _builders() -> dict[tuple[str, str], Builder]:
    found: dict[tuple[str, str], Builder] = {}
    for domain, names in _BUILDERS.items():
        package = "torchvision.models." + (f"{domain}." if domain else "")
        for name in names.split():
            builder = name.lower()
            member = _FLOW_MEMBERS[builder] if domain == "optical_flow" else _MEMBERS[domain]
            backbone = next((weights for part, weights in _BACKBONES.items() if part in builder), None)
            has_backbone = domain in ("detection", "segmentation") and backbone is not None
            found[domain, builder] = Builder(
                f"{package}{name}_Weights.{member}",
                f"torchvision.models.{backbone}" if has_backbone else None,
            )
    for domain, names in _OTHERS.items():
        found |= {(domain, name): Builder(None, None) for name in names.split()}
    return found


BUILDERS = _builders()


def builder(qualified: str) -> Builder | None:
    """The builder of a model by its full name."""
    match = _BUILDER.fullmatch(qualified)
    return BUILDERS.get((match[1] or "", match[2])) if match is not None else None


# What is gone, and where it or its successor is.
_SUCCESSORS = (
    (regex(r"torchvision\.transforms\.(?:transforms\.)?Scale"), "torchvision.transforms.Resize"),
    (regex(r"torchvision\.transforms\.(?:transforms\.)?RandomSizedCrop"), "torchvision.transforms.RandomResizedCrop"),
    (regex(r"torchvision\.transforms\.functional_tensor(\.[a-z]\w*)?"), r"torchvision.transforms.functional\1"),
    (regex(r"torchvision\.models\.utils\.load_state_dict_from_url"), "torch.hub.load_state_dict_from_url"),
    (regex(r"torchvision\.ops\.misc\.interpolate"), "torch.nn.functional.interpolate"),
    (regex(r"torchvision\.ops\.misc\.(Conv2d|ConvTranspose2d|BatchNorm2d)"), r"torch.nn.\1"),
    (regex(r"torchvision\.datapoints"), "torchvision.tv_tensors"),
)  # fmt: skip

GONE = frozenset(
    "BatchNorm2d Conv2d ConvTranspose2d RandomSizedCrop Scale datapoints functional_tensor interpolate "
    "load_state_dict_from_url".split()
)
"""The last parts of the names that are gone."""


def successor(qualified: str) -> str | None:
    """What has taken the place of a name that torchvision no longer has."""
    for pattern, replacement in _SUCCESSORS:
        if match := pattern.fullmatch(qualified):
            return match.expand(replacement)
    return None


# Parameters by another name: the functions that had them, the old and the new one.
RENAMED = (
    (regex(r"torchvision\.utils\.(make_grid|save_image)"), "range", "value_range"),
    (regex(r"torchvision\.transforms\.(RandomRotation|RandomAffine|functional\.(rotate|affine))"),
     "resample", "interpolation"),
    (regex(r"torchvision\.transforms\.(RandomAffine|functional\.affine)"), "fillcolor", "fill"),
)  # fmt: skip
