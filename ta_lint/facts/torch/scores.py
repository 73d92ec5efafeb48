"""Names of metrics: which of them are better the higher, and which the lower."""

import re

from ta_lint.core.lazy import regex

_WORD = regex(r"[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])\d*")
_BETTER_LOW = frozenset(
    "loss losses err error errors mse mae rmse mape nll wer cer ppl perplexity fid bce crossentropy xent".split()
)
_BETTER_HIGH = frozenset(
    "acc accuracy auc auroc auprc f1 bleu dice iou jaccard kappa map mcc miou precision psnr recall rouge ssim".split()
)
_REVERSED = frozenset("neg negative negated minus inv inverse inverted".split())


def is_better_low(name: str) -> bool | None:
    """Whether a metric of this name is better the lower it is; None if the name does not tell, or speaks of a turned sign."""
    parts = re.split(r"[^A-Za-z0-9]+", name)
    words = {word.lower() for part in parts for word in (part, *_WORD.findall(part))}
    if words & _REVERSED:
        return None
    if words & _BETTER_LOW:
        return True
    return False if words & _BETTER_HIGH else None
