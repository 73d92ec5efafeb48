"""What a session is asked to do: the arguments of `enable` and `Auditor` over `[tool.ta]` of the project."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ta_lint.core.catalogue import catalogue, check_selector
from ta_lint.core.config import Config, Configs, Options, project_root
from ta_lint.core.errors import UsageError, hint
from ta_lint.core.finding import Finding, Severity
from ta_runtime.storage import Place, located

OnFinding = Callable[[Finding], object]

_OF_DATA = ("TA314", "TA856")
"""Rules that are opt-in as the source says little about them: a preflight looks at the data itself."""
VIOLATED = "TA510"
"""The rule that tells of what breaks an invariant."""

OVERHEAD = 0.03
"""The share of the time of a run that looking at its steps may take, unless the user says otherwise."""
_SEVERITIES = {"info": "note", "warn": "warning", "fatal": "error"}


@dataclass(frozen=True)
class Settings:
    """What holds for one session; `resolve` makes it."""

    config: Config
    root: Path
    """The folder that finding paths are relative to."""
    rules: frozenset[str]
    """Ids of the enabled rules that a run can see."""
    asked: frozenset[str]
    """The same for what the user asks about, by an `Auditor` or `ta-runtime audit`: unless rules were chosen, also those
    that are off by default. Empty where a run is watched."""
    overhead: float
    every_n_steps: int | None
    """None: as often as the overhead allows, unless the run is `comparable`."""
    comparable: bool
    """Whether each run of the script is looked at in the same steps: recorded runs are compared step by step."""
    gradients_every_n_steps: int | None
    """The same."""
    schedule: Path | None
    """The file of another run that says at which steps it looked, to look at the same."""
    save_schedule: Path | None
    """The file that the steps are written into."""
    start_step: int
    output: Path | None
    fail_level: Severity | None
    on_finding: OnFinding | None
    baseline: Path | None
    compiled: Literal["skip", "eager"]
    live: bool
    lint: bool
    """Whether the linter reads the code that runs, and the run judges what it suspects."""
    configs: Configs
    """The settings of every folder, for the linter."""
    record: Place | None
    """The folder that the run is recorded in."""
    snapshots: str | None
    """When snapshots are taken into it."""
    send: bool
    """Whether what is measured and found goes to the trackers that the script has open."""
    invariants: tuple[Path, ...]
    """The files of invariants that the run is held against."""
    invariants_every_n_steps: int
    preflight: bool
    """Whether what enters the model is looked at before the first step, and shown."""


def resolve(
    *,
    rules: str | Iterable[str] | None = None,
    ignore: str | Iterable[str] = (),
    overhead: float | None = None,
    every_n_steps: int | None = None,
    gradients_every_n_steps: int | None = None,
    schedule: str | Path | None = None,
    save_schedule: str | Path | None = None,
    start_step: int = 0,
    output: str | Path | None = None,
    fail_level: str | None = None,
    on_finding: OnFinding | None = None,
    baseline: str | Path | None = None,
    compiled: Literal["skip", "eager"] = "skip",
    live: bool = True,
    lint: bool = False,
    record: str | Path | None = None,
    snapshots: str | None = None,
    send: bool = False,
    invariants: str | Path | Iterable[str | Path] | None = None,
    invariants_every_n_steps: int = 10,
    preflight: bool = False,
    looks_at_data: bool = False,
    asks: bool = False,
    extend_select: Iterable[str] = (),
    config_file: Path | None = None,
    isolated: bool = False,
    keys: tuple[str, str, str] = ("rules", "ignore", "baseline"),
) -> Settings:
    """The settings that these arguments and the project's `[tool.ta]` give.

    `looks_at_data` says that this is a preflight in itself, and `asks` that the user asks about one model. `keys` are what the caller calls `rules`, `ignore` and `baseline`.

    Raises:
        UsageError: an argument, or the project's file, is wrong; the text says which and what to write.
    """
    _check_steps(overhead, every_n_steps, gradients_every_n_steps, schedule)
    comparable = record is not None and (overhead, every_n_steps, schedule) == (None, None, None)
    if gradients_every_n_steps is None and not (every_n_steps is None and record is None):
        gradients_every_n_steps = 1
    _check_number("start_step", start_step)
    _check_number("invariants_every_n_steps", invariants_every_n_steps, least=1)
    if compiled not in ("skip", "eager"):
        raise UsageError(f"compiled: {compiled!r} is neither 'skip' nor 'eager'")
    if on_finding is not None and not callable(on_finding):
        raise UsageError("on_finding: not a function of one finding")
    cwd = Path.cwd()
    schedule, save_schedule = _path("schedule", schedule), _path("save_schedule", save_schedule)
    if save_schedule is not None and not save_schedule.absolute().parent.is_dir():
        raise UsageError(f"save_schedule: {save_schedule}: the folder does not exist; make it first")
    output, baseline = _path("output", output), _path(keys[2], baseline)
    if record is not None and not isinstance(record, (str, Path)):
        raise UsageError(f"record: {record!r} is not the path of a folder")
    folder = located(record) if record is not None else None
    if snapshots is not None and record is None:
        raise UsageError("snapshots: need the folder of the run, such as record='runs/1'")
    select = _listed(keys[0], rules) if rules is not None else None
    ignored = _listed(keys[1], ignore)

    def configured(*more: str) -> Configs:
        options = Options(
            select=select,
            extend_select=[*extend_select, *more],
            ignore=ignored,
            baseline=baseline,
            config=config_file,
            isolated=isolated,
        )
        return Configs(options, cwd)

    configs = configured()
    config = configs.root_config
    rules_on = config.rules
    if (preflight or looks_at_data) and select is None:
        rules_on |= configured(*_OF_DATA).root_config.rules & set(_OF_DATA)
    asked = frozenset[str]()
    if asks:
        asked = rules_on if select is not None else configured("ALL").root_config.rules
    held_against = _paths("invariants", invariants)
    seen = {rule.id for rule in catalogue().values() if "runtime" in rule.observers}
    if select is not None and not (config.rules & seen) - {"TA000"}:
        raise UsageError(f"{keys[0]}: a run sees none of these rules; see `ta-lint rules`")
    if held_against:
        check_told(config.rules, keys)
    return Settings(
        config=config,
        root=project_root(cwd),
        rules=rules_on & seen,
        asked=asked & seen,
        overhead=OVERHEAD if overhead is None else overhead,
        every_n_steps=every_n_steps,
        comparable=comparable,
        gradients_every_n_steps=gradients_every_n_steps,
        schedule=schedule,
        save_schedule=save_schedule.absolute() if save_schedule is not None else None,
        start_step=start_step,
        output=output.absolute() if output is not None else None,
        fail_level=severity(fail_level) if fail_level is not None else None,
        on_finding=on_finding,
        baseline=config.baseline.absolute() if config.baseline is not None else None,
        compiled=compiled,
        live=live,
        lint=lint,
        configs=configs,
        record=folder.absolute() if folder is not None else None,
        snapshots=snapshots,
        send=send,
        invariants=held_against,
        invariants_every_n_steps=invariants_every_n_steps,
        preflight=preflight,
    )


def _check_steps(
    overhead: float | None,
    every_n_steps: int | None,
    gradients_every_n_steps: int | None,
    schedule: str | Path | None,
) -> None:
    """Raises:
    UsageError: one of what says which steps are looked at is wrong, or two contradict.
    """
    _check_share("overhead", OVERHEAD if overhead is None else overhead)
    _check_number("every_n_steps", every_n_steps or 0)
    _check_number("gradients_every_n_steps", gradients_every_n_steps or 0)
    if every_n_steps is not None and overhead is not None:
        raise UsageError("overhead: every_n_steps already decides the steps; give only one of the two")
    if schedule is not None and (overhead, every_n_steps, gradients_every_n_steps) != (None, None, None):
        raise UsageError(
            "schedule: the file already decides the steps; leave the other options for steps out"
        )


def check_told(rules: Collection[str], keys: tuple[str, str, str]) -> None:
    """See to it that what breaks an invariant is told of; `keys` are those of `resolve`.

    Raises:
        UsageError: the rule that does so is not among these.
    """
    if VIOLATED not in rules:
        add = f"add --extend-select {VIOLATED}" if keys[0] == "--select" else f"name it in `{keys[0]}`"
        raise UsageError(
            f"{VIOLATED} is not among the rules that are on ([tool.ta] select, {keys[0]}, {keys[1]}): "
            f"these invariants would not be checked; {add}, and do not ignore it"
        )


def severity(word: str) -> Severity:
    """A severity by its own word or by those of torch-audit: INFO, WARN, ERROR, FATAL.

    Raises:
        UsageError: it is none of them.
    """
    try:
        return Severity(_SEVERITIES.get(str(word).lower(), str(word).lower()))
    except ValueError as error:
        raise UsageError(
            f"fail_level: {word!r} is none of note, warning, error{hint(str(word), Severity)}"
        ) from error


def _check_number(name: str, value: object, *, least: int = 0) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"{name}: {value!r} is not a number of steps, {least} or more")


def _check_share(name: str, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 1:
        raise UsageError(f"{name}: {value!r} is not a share of the time, such as 0.03")


def _path(name: str, value: object) -> Path | None:
    if value is None or isinstance(value, (str, Path)):
        return Path(value) if value is not None else None
    raise UsageError(f"{name}: {value!r} is not the path of a file")


def _paths(name: str, value: object) -> tuple[Path, ...]:
    several = value if isinstance(value, Iterable) and not isinstance(value, (str, Path)) else [value]
    return tuple(path.absolute() for each in several if (path := _path(name, each)) is not None)


def _listed(name: str, rules: object) -> list[str]:
    words = rules.replace(",", " ").split() if isinstance(rules, str) else rules
    found: list[str] = []
    for word in words if isinstance(words, Iterable) else [words]:
        if not isinstance(word, str):
            raise UsageError(
                f"{name}: {word!r} is not a rule; write 'TA102,stability', or a list of such words"
            )
        check_selector(word, name)
        found.append(word)
    return found
