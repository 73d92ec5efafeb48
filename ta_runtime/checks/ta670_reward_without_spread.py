"""TA670: all rewards of a group are equal, so its advantages are 0 and it teaches nothing."""

from collections.abc import Iterator

from ta_runtime.facts import Run, Suspicion

STEPS = 20
"""Steps that a verdict needs: one batch of hard or easy prompts is normal."""
SHARE = 0.9
"""The share of groups without spread above which next to nothing is left to learn from."""


def check_progress(run: Run) -> Iterator[Suspicion]:
    for found in run.rewards:
        steps, share = found.over(STEPS)
        if steps >= STEPS and share > SHARE:
            yield Suspicion(
                found.place,
                "nearly all groups have equal rewards, so advantages are 0: check the reward function",
                {"share of such groups": round(share, 3), "over steps": steps, "trainer": found.trainer},
            )
