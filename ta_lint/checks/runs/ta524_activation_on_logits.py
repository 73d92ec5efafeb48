"""TA524: ReLU directly before a softmax: no class can score below 0."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = ()
AROUND = (
    ("cross_entropy", "CrossEntropyLoss", "Categorical", "log_softmax", "LogSoftmax"),
    ("relu", "relu_", "ReLU"),
)


def check_run(run: Run) -> Iterator[Said]:
    for scores in run.clipped_scores:
        message = "the last `relu` clips the scores at 0 and stops their gradients: leave it out"
        yield Suspicion(scores.place, message, related=((scores.activation, "`relu` is applied here"),))
