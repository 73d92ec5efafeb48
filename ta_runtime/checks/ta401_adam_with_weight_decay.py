"""TA401: Adam with weight decay is L2 regularisation, not decoupled decay."""

from collections.abc import Iterator

import torch

from ta_runtime.facts import Optimizer, Refutation, Said, Suspicion


def check_optimizer(optimizer: Optimizer) -> Iterator[Said]:
    if type(optimizer.optimizer) is not torch.optim.Adam:
        return
    decays = [
        float(group["weight_decay"])
        for group in optimizer.groups
        if group["weight_decay"] and not group.get("decoupled_weight_decay")
    ]
    if decays:
        message = (
            "`Adam` scales `weight_decay` by the adaptive step: use `AdamW`, which decays all weights equally"
        )
        yield Suspicion(optimizer.place, message, {"weight_decay": max(decays)})
    else:
        decoupled = sum(bool(group.get("decoupled_weight_decay")) for group in optimizer.groups)
        numbers = {"groups": len(optimizer.groups), "with L2": 0, "decoupled": decoupled}
        because = f"no group of {len(optimizer.groups)} has a weight decay that is L2"
        yield Refutation(optimizer.place, because, numbers)
