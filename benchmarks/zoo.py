"""What ta-runtime says about models as they are: every finding of trainings of real models from real packages.

`python benchmarks/zoo.py [--family timm] [--only NAME] [--limit N] [--own] [--json FILE]`; see `benchmarks/README.md`.
"""

import argparse
import atexit
import json
import logging
import os
import re
import runpy
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ta_lint.core.finding import Finding
from ta_runtime.audit.audit import Audit
from ta_runtime.coverage import ENOUGH
from ta_runtime.settings import resolve

STEPS = 60
"""Of a training: ten more than the rules that wait longest for gradients."""
SECONDS = 8.0
"""Of the processor, after which a training of a large model ends early: so it makes as many steps beside other programs."""
_steps = STEPS
PATIENCE = 60
"""Seconds after which one that does not get to its first steps is given up."""
LARGEST = 15_000_000
"""Parameters; a configuration that this script does not make smaller is left out."""
PACKAGES = ("peft", "timm", "torchvision", "transformers")
RUNS = Path(__file__).parents[1] / "tests" / "runs"

WORDS, LENGTH, BATCH, CLASSES = 120, 16, 16, 10


@dataclass(frozen=True)
class Training:
    """One model to train; `run` builds and trains it, and returns how many steps it made."""

    family: str
    name: str
    run: Callable[[], int]


class LeftOut(Exception):
    """A model that this script cannot build or feed; the text says why."""


# -- training -------------------------------------------------------------------------------------------------


def trained(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_of: Callable[[int], Tensor],
    scheduler: Any = None,
    clip: float | None = 1.0,
) -> int:
    """A plain training loop; `loss_of` gives the loss of the batch of a step. Returns the number of steps."""
    model.train()
    started = time.process_time()
    step = 0
    while step < _steps and (step < 5 or time.process_time() - started < SECONDS):
        optimizer.zero_grad()
        loss = loss_of(step)
        loss.backward()  # type: ignore[no-untyped-call]
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        step += 1
    return step


def sentences(batch: int = BATCH, length: int = LENGTH) -> Tensor:
    """Ids `[batch, length]` that can be learnt: each word says what the next is, up to some noise. Ids 0 to 4 are special."""
    ids = torch.randint(5, WORDS, (batch, 1))
    rows = [ids]
    for _ in range(length - 1):
        noise = torch.randint(5, WORDS, (batch, 1))
        ids = torch.where(torch.rand(batch, 1) < 0.9, (ids * 7 + 3) % (WORDS - 5) + 5, noise)
        rows.append(ids)
    return torch.cat(rows, dim=1)


def pictures(batch: int, channels: int, side: int) -> tuple[Tensor, Tensor]:
    """Normalised images `[batch, channels, side, side]` and their class, which the brightness of a corner tells."""
    labels = torch.randint(0, CLASSES, (batch,))
    images = torch.randn(batch, channels, side, side)
    half = side // 2
    images[:, :, :half, :half] += (labels.view(-1, 1, 1, 1) - CLASSES / 2) / 3
    return images, labels


# -- Transformers ---------------------------------------------------------------------------------------------

TASKS = {
    "causal": "MODEL_FOR_CAUSAL_LM_MAPPING",
    "masked": "MODEL_FOR_MASKED_LM_MAPPING",
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "sequence": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING",
    "token": "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING",
    "image": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING",
    "audio": "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING",
}
SMALL = {
    "vocab_size": WORDS, "hidden_size": 32, "d_model": 32, "n_embd": 32, "embedding_size": 32, "num_hidden_layers": 3,
    "n_layer": 3, "num_layers": 3, "encoder_layers": 2, "decoder_layers": 2, "num_decoder_layers": 2,
    "num_attention_heads": 4, "n_head": 4, "num_heads": 4, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "d_head": 8, "intermediate_size": 64, "n_inner": 64,
    "d_inner": 64, "d_ff": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "ffn_dim": 64, "max_position_embeddings": 64,
    "n_positions": 64, "num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "n_group": 1, "topk_group": 1,
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8,
    "first_k_dense_replace": 1, "state_size": 8, "expand": 2, "mamba_d_state": 8, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1, "image_size": 32, "patch_size": 8, "num_labels": CLASSES,
    "use_cache": False, "hidden_dropout_prob": 0.1,
}  # fmt: skip
"""Sizes of configurations, by the names that they go by."""
LATENT = ("q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
UNSURE: list[dict[str, int | None]] = [
    {},
    {"num_key_value_heads": 4},
    {"head_dim": None},
    {"head_dim": None, **dict.fromkeys(LATENT), "num_key_value_heads": 4},
    {name: None for name in SMALL if name not in ("num_hidden_layers", "vocab_size", "num_labels")},
]
"""What to have instead where a model cannot be built with all of these, one after the other; None: as it is."""


def transformers() -> Iterator[Training]:
    for task, mapping in TASKS.items():
        models = getattr(import_module("transformers.models.auto.modeling_auto"), mapping)
        for kind in sorted(models, key=lambda kind: str(kind.__name__)):
            model = models[kind] if not isinstance(models[kind], tuple) else models[kind][0]
            yield Training(
                "transformers", f"{task}/{model.__name__}", partial(_transformer, task, kind, model)
            )
    for kind, targets in (("LlamaConfig", ["q_proj", "v_proj"]), ("GPT2Config", ["c_attn"])):
        yield Training("transformers", f"lora/{kind}", partial(_lora, kind, targets))


def _small(kind: Any, instead: Mapping[str, int | None] = MappingProxyType({})) -> Any:
    """A configuration of this class with small sizes; what it has no such name for stays as it is."""
    usual = kind()
    parts = {
        name: _small(type(getattr(usual, name)), instead).to_dict()
        for name in getattr(kind, "sub_configs", {})
        if getattr(usual, name, None) is not None
    }
    names = {*vars(usual), *getattr(kind, "attribute_map", {}), "num_labels"}
    sizes = {
        name: size
        for name, size in {**SMALL, **instead}.items()
        if size is not None
        and name in names
        and (isinstance(getattr(usual, name, None), (int, float)) or name.endswith("_token_id"))
    }
    return kind(**sizes, **parts)


def _transformer(task: str, kind: Any, made: Any) -> int:
    reasons = []
    for instead in UNSURE:
        try:
            config = _small(kind, instead)
            with torch.device("meta"):
                size = sum(parameter.numel() for parameter in made(config).parameters())
            if size > LARGEST:
                reasons.append(f"{size} parameters")
                continue
            config.decoder_start_token_id = getattr(config, "decoder_start_token_id", None) or 1
            model = made(config)
            given = partial(_given, task, config)
            with torch.no_grad():
                model(**given())
        except LeftOut:
            raise
        except Exception as error:  # noqa: BLE001 - these sizes do not fit each other
            reasons.append(f"{type(error).__name__}: {str(error)[:80]}")
        else:
            return _fine_tuned(model, given)
    raise LeftOut(reasons[0])


def _given(task: str, config: Any) -> dict[str, Tensor]:
    """A batch with its labels, by the names of the arguments."""
    if task == "image":
        images, labels = pictures(
            BATCH, getattr(config, "num_channels", 3), getattr(config, "image_size", 32)
        )
        return {"pixel_values": images, "labels": labels}
    if task == "audio":
        labels = torch.randint(0, CLASSES, (4,))
        waves = torch.sin(torch.arange(8000) * (labels.view(-1, 1) + 1) / 50) + 0.1 * torch.randn(4, 8000)
        return {"input_values": waves, "labels": labels}
    ids = sentences()
    if task == "sequence":
        return {"input_ids": ids, "labels": ids[:, 0] % CLASSES}
    if task == "token":
        return {"input_ids": ids, "labels": ids % CLASSES}
    if task == "masked":
        masked = torch.rand(ids.shape) < 0.15
        masked[:, 1] = True
        return {"input_ids": ids.masked_fill(masked, 4), "labels": ids.masked_fill(~masked, -100)}
    return {"input_ids": ids, "labels": ids.clone()}


def _fine_tuned(model: Any, given: Callable[[], dict[str, Tensor]]) -> int:
    """With the groups, the warm-up and the clipping of Transformers' Trainer."""
    library = import_module("transformers")
    decayed = set(library.Trainer.get_decay_parameter_names(None, model))
    named = [(name, tensor) for name, tensor in model.named_parameters() if tensor.requires_grad]
    groups = [
        {"params": [tensor for name, tensor in named if name in decayed], "weight_decay": 0.01},
        {"params": [tensor for name, tensor in named if name not in decayed], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=5e-4)
    scheduler = library.get_linear_schedule_with_warmup(optimizer, 5, 10 * STEPS)

    def loss_of(step: int) -> Tensor:
        loss: Tensor = model(**given()).loss
        return loss

    return trained(model, optimizer, loss_of, scheduler)


def _lora(kind: str, targets: list[str]) -> int:
    library, peft = import_module("transformers"), _imported("peft")
    config = _small(getattr(library, kind))
    model = library.AutoModelForCausalLM.from_config(config)
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", target_modules=targets, r=4))
    return _fine_tuned(adapted, partial(_given, "causal", config))


# -- timm and torchvision -------------------------------------------------------------------------------------

_LITTLE = ("test_", "atto", "nano", "femto", "pico", "xxsmall", "xxs", "xxt", "extra_tiny", "tiny", "micro", "_xs", "_xt", "small",
           "mini", "_b0", "_0", "_s0", "_s", "18", "26", "_t", "a0", "m0", "050", "002", "16")  # fmt: skip
"""What the names of a family's small models have, smallest first."""


def timm() -> Iterator[Training]:
    """One small model of each of timm's modules."""
    library = _imported("timm")
    for module in library.list_modules():
        names = library.list_models(module=module)
        if names:
            name = min(names, key=lambda name: (_littleness(name), len(name), name))
            yield Training("timm", f"{module}/{name}", partial(_image_model, name))


def _littleness(name: str) -> int:
    return next((rank for rank, word in enumerate(_LITTLE) if word in name), len(_LITTLE))


def _image_model(name: str) -> int:
    library = _imported("timm")
    reasons = []
    narrow = {"embed_dim": 96, "depth": 3, "num_heads": 3}
    for options in ({"img_size": 64}, {"img_size": 64, **narrow}, narrow, {}):
        try:
            model = library.create_model(name, pretrained=False, num_classes=CLASSES, **options)
            side = (
                64
                if "img_size" in options or not model.default_cfg.get("fixed_input_size")
                else model.default_cfg["input_size"][1]
            )
            if sum(parameter.numel() for parameter in model.parameters()) > 3 * LARGEST:
                reasons.append("too large")
                continue
            with torch.no_grad():
                model.eval()(torch.randn(2, 3, side, side))
            break
        except LeftOut:
            raise
        except Exception as error:  # noqa: BLE001 - it does not take these
            reasons.append(f"{type(error).__name__}: {str(error)[:100]}")
    else:
        raise LeftOut(reasons[-1])
    attention = any("attn" in name for name, _ in model.named_parameters())
    create = import_module("timm.optim").create_optimizer_v2
    optimizer = create(
        model,
        "adamw" if attention else "sgd",
        lr=1e-3 if attention else 0.05,
        weight_decay=0.05 if attention else 1e-4,
    )
    batch = BATCH if side == 64 else 4

    def loss_of(step: int) -> Tensor:
        images, labels = pictures(batch, 3, side)
        scores = model(images)
        scores = scores[0] if isinstance(scores, tuple) else scores
        return functional.cross_entropy(scores, labels, label_smoothing=0.1)

    return trained(model, optimizer, loss_of)


def torchvision() -> Iterator[Training]:
    models = _imported("torchvision").models
    for name in models.list_models(module=models):
        if any(
            word in name
            for word in (
                "_l_",
                "_h_",
                "_b_",
                "101",
                "152",
                "161",
                "169",
                "201",
                "19",
                "16",
                "13",
                "wide",
                "128gf",
                "32gf",
                "large",
                "b5",
                "b6",
                "b7",
            )
        ):
            continue
        yield Training("torchvision", f"image/{name}", partial(_vision_classifier, name))
    for name in models.list_models(module=models.segmentation):
        yield Training("torchvision", f"segmentation/{name}", partial(_segmenter, name))
    for name in models.list_models(module=models.detection):
        yield Training("torchvision", f"detection/{name}", partial(_detector, name))


def _vision_classifier(name: str) -> int:
    side = (
        299
        if "inception" in name
        else 224
        if name.startswith(("vit", "alexnet", "squeezenet", "vgg", "maxvit"))
        else 64
    )
    model = _imported("torchvision").models.get_model(name, weights=None, num_classes=CLASSES)
    if sum(parameter.numel() for parameter in model.parameters()) > 70_000_000:
        raise LeftOut("too large")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    def loss_of(step: int) -> Tensor:
        images, labels = pictures(BATCH if side == 64 else 4, 3, side)
        scores = model(images)
        if isinstance(scores, tuple):  # with auxiliary heads
            first, *others = [score for score in scores if score is not None]
            return functional.cross_entropy(first, labels) + sum(
                0.3 * functional.cross_entropy(o, labels) for o in others
            )
        return functional.cross_entropy(scores, labels)

    return trained(model, optimizer, loss_of, clip=None)


def _segmenter(name: str) -> int:
    model = _imported("torchvision").models.get_model(
        name, weights=None, weights_backbone=None, num_classes=3, aux_loss=True
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    def loss_of(step: int) -> Tensor:
        images, _ = pictures(8, 3, 64)
        masks = (images.mean(1) > 0).long() + (images.mean(1) > 0.7).long()
        masks[:, :2] = 255
        scores = model(images)
        losses = {
            key: functional.cross_entropy(value, masks, ignore_index=255) for key, value in scores.items()
        }
        return losses["out"] + 0.5 * losses["aux"]

    return trained(model, optimizer, loss_of, clip=None)


def _detector(name: str) -> int:
    options = (
        {"min_size": 96, "max_size": 96} if "rcnn" in name or "retinanet" in name or "fcos" in name else {}
    )
    model = _imported("torchvision").models.get_model(
        name, weights=None, weights_backbone=None, num_classes=3, **options
    )
    chosen = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(chosen, lr=0.002, momentum=0.9, weight_decay=5e-4)

    def loss_of(step: int) -> Tensor:
        images, targets = [], []
        for _ in range(2):
            left, top = (int(value) for value in torch.randint(5, 30, (2,)))
            image = torch.rand(3, 96, 96)
            image[:, top : top + 40, left : left + 40] = 1.0
            images.append(image)
            target = {
                "boxes": torch.tensor([[left, top, left + 40.0, top + 40.0]]),
                "labels": torch.tensor([1]),
            }
            if "mask" in name:
                target["masks"] = (image[:1] == 1.0).to(torch.uint8)
            if "keypoint" in name:
                target["keypoints"] = torch.tensor([[[left + 20.0, top + 20.0, 1.0]] * 17])
            targets.append(target)
        return sum(model(images, targets).values(), torch.zeros(()))

    return trained(model, optimizer, loss_of, clip=None)


# -- loops ----------------------------------------------------------------------------------------------------


def loops() -> Iterator[Training]:
    """The healthy runs of the tests: loops written as the reference code of their papers writes them."""
    for path in sorted(RUNS.glob("*.py")):
        yield Training("loops", path.stem, partial(_script, path))


def _script(path: Path) -> int:
    with redirect_stdout(sys.stderr):
        runpy.run_path(str(path), run_name="__main__")
    return 0


FAMILIES: dict[str, Callable[[], Iterator[Training]]] = {
    "loops": loops,
    "transformers": transformers,
    "timm": timm,
    "torchvision": torchvision,
}


def _imported(package: str) -> Any:
    """A package that is not needed for the rest.

    Raises:
        LeftOut: it is not installed, or does not load.
    """
    try:
        return import_module(package)
    except (ImportError, RuntimeError) as error:
        raise LeftOut(f"{package} does not load: {type(error).__name__}") from error


_declared: list[torch.library.Library] = []


def _declare_operators() -> None:
    """torchvision's wheels are built for CUDA and do not load their operators beside a CPU build of torch, which
    then complains that there is nothing to describe. Detection needs one of them."""
    if _declared or find_spec("torchvision") is None or torch.version.cuda is not None:
        return
    library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.append(library)
    boxes: Any = import_module("torchvision.ops.boxes")
    library.impl("nms", partial(_suppressed, boxes.box_iou), "CPU")
    boxes._assert_has_ops = lambda: None


def _suppressed(
    overlaps: Callable[[Tensor, Tensor], Tensor], boxes: Tensor, scores: Tensor, threshold: float
) -> Tensor:
    """Non-maximum suppression, as `torchvision.ops.nms` describes it."""
    order = scores.argsort(descending=True)
    kept = []
    while len(order):
        kept.append(order[0])
        order = order[1:][overlaps(boxes[order[:1]], boxes[order[1:]])[0] <= threshold]
    return torch.stack(kept) if kept else order


# -- watching -------------------------------------------------------------------------------------------------


@dataclass
class Result:
    """What became of one training; `findings` as text: rule, place, message and evidence."""

    family: str
    name: str
    steps: int = 0
    seconds: float = 0.0
    left_out: str = ""
    raised: str = ""
    findings: list[dict[str, str]] = field(default_factory=list)


def watched(training: Training, *, trial: bool = False) -> Result:
    """One training with every step audited by the default rules; a `trial` as by an `Auditor` that ends after few."""
    torch.manual_seed(0)
    result = Result(training.family, training.name)
    audit = Audit(resolve(every_n_steps=1, live=False, isolated=True, asks=trial), place=__file__)
    started = time.perf_counter()
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(PATIENCE)
    audit.start()
    try:
        result.steps = training.run()
    except LeftOut as reason:
        result.left_out = str(reason)
    except Exception as error:  # noqa: BLE001 - a model that cannot be trained so is no finding
        result.raised = f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)
        audit.stop()
    result.steps = result.steps or audit.session.step_count
    result.seconds = round(time.perf_counter() - started, 2)
    if not result.left_out:
        result.findings = [_told(finding) for finding in audit.findings]
    return result


def _give_up(number: int, frame: FrameType | None) -> None:
    raise LeftOut("it takes too long")


def _told(finding: Finding) -> dict[str, str]:
    evidence = ", ".join(f"{key}: {value}" for key, value in finding.evidence.items())
    where = f"{finding.site.path}:{finding.site.line}"
    return {"rule": finding.rule, "where": where, "message": finding.message, "evidence": evidence}


def _as_own() -> None:
    """Put the packages where they are not known as a library's, so that the rules see their classes as the user's."""
    folder = Path(tempfile.mkdtemp(prefix="zoo-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # links: what they point to stays
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            (folder / package).symlink_to(spec.submodule_search_locations[0])
    sys.path.insert(0, str(folder))


def main() -> int:
    """Train and print; returns the exit status."""
    arguments = _arguments()
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    torch.set_num_threads(1)
    if arguments.own:
        _as_own()
    if arguments.trial:
        global _steps
        _steps = ENOUGH
    _declare_operators()
    results = []
    for family in arguments.family or list(FAMILIES):
        try:
            trainings = [
                training for training in FAMILIES[family]() if re.search(arguments.only, training.name)
            ]
        except LeftOut as reason:
            print(f"{family}: left out: {reason}", flush=True)
            continue
        for training in trainings[: arguments.limit]:
            result = watched(training, trial=arguments.trial)
            results.append(result)
            print("\n".join(_lines(result)), flush=True)
            if arguments.json is not None:
                text = json.dumps([asdict(result) for result in results], indent=1)
                arguments.json.write_text(text + "\n", encoding="utf-8")
    print("\n".join(_summary(results)))
    return 0


def _lines(result: Result) -> Iterator[str]:
    head = f"{result.family} {result.name}"
    if result.left_out:
        yield f"{head}: left out: {result.left_out}"
        return
    raised = f", raised {result.raised}" if result.raised else ""
    yield f"{head}: {result.steps} steps, {result.seconds} s{raised}"
    for finding in result.findings:
        yield f"    {finding['rule']} {finding['where']} {finding['message']} ({finding['evidence']})"


def _summary(results: list[Result]) -> Iterator[str]:
    done = [result for result in results if result.steps and not result.left_out]
    yield f"{len(done)} trainings, {sum(result.steps for result in done)} steps; {len(results) - len(done)} left out"
    for rule, count in sorted(Counter(f["rule"] for result in done for f in result.findings).items()):
        models = sum(any(f["rule"] == rule for f in result.findings) for result in done)
        yield f"{rule}: {count} findings in {models} trainings"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Train real models under ta-runtime, and print every finding."
    )
    parser.add_argument("--family", choices=FAMILIES, action="append", help="may be repeated (default: all)")
    parser.add_argument("--only", default="", metavar="PATTERN", help="trainings whose name matches")
    parser.add_argument("--limit", type=int, metavar="N", help="the first trainings of each family")
    parser.add_argument(
        "--trial", action="store_true", help="make four steps, as an audit that a user asks for"
    )
    parser.add_argument("--own", action="store_true", help="take the packages' classes for the user's own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to a file as well")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
