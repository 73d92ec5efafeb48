"""TA908: a `torch.library.Library` in a test keeps its operators registered for later tests."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Suspicion

KEYWORDS = ("Library",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test:
        for call in module.calls_to("torch.library.Library"):
            yield Suspicion(call, "this registration leaks into the tests that follow: destroy the library")
