"""TA605: gradients are clipped while they are still scaled by a gradient scaler."""

from collections.abc import Iterator, Sequence
from enum import Enum

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.order import ExecutionPath, LoopEvent
from ta_lint.facts.torch.preparing import Preparer
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, insert_line_before, replace
from ta_lint.syntax.tree import Node, argument, dotted, is_name

_HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
KEYWORDS = (("*clip*", "*clamp*", *_HOOKS),)
AROUND = (("scale", "accelerate", "*fabric*"), "step", ("*clip*", "*clamp*"))

_BREAKS = (Action.UNSCALE, Action.UNKNOWN, Action.STEP, Action.CLEAR)

_CLAMPS = ("clamp", "clamp_", "clip", "clip_")


# Where frameworks get the precision, and the words that may mean float16; a setting may mean anything.
_PRECISIONS = {Preparer.ACCELERATE: "mixed_precision", Preparer.FABRIC: "precision"}
_FLOAT16 = ("fp16", "16-mixed", "16")
_OF_ACCELERATE = frozenset({"clip_grad_norm_", "clip_grad_value_"})


class _State(Enum):
    SCALED = "scaled"
    PLAIN = "as they should be"
    APART = "nothing to say"


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    for clip in module.order.events(Action.CLIP):
        if not module.order.clips_as_torch(clip) or module.order.minds_scale(clip.call.args):
            continue
        region = module.order.region_by_calls(clip, Action.BACKWARD, Action.STEP)
        if region is None:
            yield from _clipped_apart(module, clip)
            continue
        paths = module.order.paths_with(region, clip)
        if (backward := _of_framework(paths, module)) is not None:
            yield _past_framework(module, clip, backward)
            continue
        found = [_state(path, index) for path, index in paths]
        states = {state for state, _ in found}
        step = next((step for state, step in found if state is _State.SCALED), None)
        if step is None or step.scaler is None or _State.PLAIN in states or _is_disabled(module, step.scaler):
            continue
        if not module.order.unscales_by_hand(region):
            yield _suspicion(module, clip, step, step.scaler)
    yield from _clipped_by_hooks(module)


def _suspicion(module: FileFacts, clip: LoopEvent, step: LoopEvent, scaler: Node) -> Suspicion:
    call = f"{module.code(scaler)}.unscale_({module.code(step.subject)})"
    message = f"gradients are clipped before `{call}`, so the scale decides how much: unscale first"
    return Suspicion(clip.call, message, ((step.place, "the step that unscales"),), _fix(module, clip, step))


# -- a framework's scaler -------------------------------------------------------------------------------------


def _of_framework(paths: list[tuple[ExecutionPath, int]], module: FileFacts) -> LoopEvent | None:
    """The backward pass of Accelerate or Fabric before a clip on every path, where float16 may scale its loss."""
    found: list[LoopEvent] = []
    for path, index in paths:
        last = max((i for i in range(index) if path[i].action is Action.BACKWARD), default=None)
        if last is None or not _may_scale(path[last].call, module):
            return None
        if any(event.action is Action.UNSCALE for event in path[last:index]):
            return None
        found.append(path[last])
    return found[0] if found else None


def _may_scale(backward: cst.Call, module: FileFacts) -> bool:
    """Whether a backward pass belongs to an object created for float16, or for a precision from a setting."""
    preparer = module.preparing.backwards_by(backward)
    option = _PRECISIONS.get(preparer) if preparer is not None else None
    if option is None or not isinstance(backward.func, cst.Attribute):
        return False
    made = module.preparing.made(backward.func.value)
    given = argument(made, option) if made is not None else None
    return given is not None and module.string(given) in (None, *_FLOAT16)


def _past_framework(module: FileFacts, clip: LoopEvent, backward: LoopEvent) -> Suspicion:
    assert isinstance(backward.call.func, cst.Attribute)
    holder, name = backward.call.func.value, called_name(clip.call)
    message = f"gradients are clipped as `{module.code(holder)}` has scaled them, so the scale decides how much: unscale first"
    fix = None
    if (
        module.preparing.preparer(holder) is Preparer.ACCELERATE
        and name in _OF_ACCELERATE
        and not backward.via
    ):
        code = f"{module.verbatim(holder)}.{name}"
        fix = ProposedFix(f"call `{code}`", (replace(clip.call.func, code),))
    return Suspicion(clip.call, message, ((backward.place, "the backward pass that scales"),), fix)


def _clipped_apart(module: FileFacts, clip: LoopEvent) -> Iterator[Suspicion]:
    """A clip and the step of a scaler in a function that is called after the backward pass: the scaler scales the loss elsewhere in
    the file, and nothing in the file unscales.
    """
    region = module.order.region_by_calls(clip, Action.STEP)
    if region is None or module.order.unscales_by_hand(module.tree.root):
        return
    names = {called_name(call) for call in module.tree.all(cst.Call) if isinstance(call.func, cst.Attribute)}
    if "scale" not in names or any(name is not None and "unscale" in name for name in names):
        return
    steps: list[LoopEvent] = []
    for path, index in module.order.paths_with(region, clip):
        step = next((event for event in path[index + 1 :] if event.action is Action.STEP), None)
        if step is None or step.scaler is None or any(event.action in _BREAKS for event in path[:index]):
            return
        steps.append(step)
    if steps and steps[0].scaler is not None and not _is_disabled(module, steps[0].scaler):
        yield _suspicion(module, clip, steps[0], steps[0].scaler)


# -- hooks ----------------------------------------------------------------------------------------------------


def _clipped_by_hooks(module: FileFacts) -> Iterator[Suspicion]:
    """Hooks of parameters that clip each gradient as it is computed, before any step could unscale it."""
    for call in module.tree.all(cst.Call):
        if called_name(call) not in _HOOKS or not call.args or not isinstance(call.func, cst.Attribute):
            continue
        clip = _clip_in_hook(module, call.args[0].value)
        if clip is None or module.order.minds_scale([call.args[0].value, clip]):
            continue
        step = _scaled_step(module, call) if _is_parameter(module, call.func.value) else None
        if step is not None and step.scaler is not None:
            message = f"the hook clips gradients that `{module.code(step.scaler)}` has scaled, so the scale decides how much"
            yield Suspicion(call, message, ((step.call, "the step that unscales"),))


def _clip_in_hook(module: FileFacts, hook: cst.BaseExpression) -> cst.Call | None:
    """The call with which a hook clips its gradient, if it returns no other."""
    if isinstance(hook, cst.Lambda):
        params, results = hook.params.params, [hook.body]
    else:
        function = module.calls.function(hook)
        if function is None:
            return None
        params = function.params.params
        returned = [found.value for found in module.tree.own(function, cst.Return)]
        results = [value for value in returned if value is not None]
    clips = [_clip_of(module, module.kinds.origin(result), params[:1]) for result in results]
    return clips[0] if clips and all(clips) else None


def _clip_of(module: FileFacts, result: Node, params: Sequence[cst.Param]) -> cst.Call | None:
    """The call, if it clips the value of the parameter: `torch.clamp(grad, -1, 1)`, `grad.clamp(-1, 1)`."""
    if not isinstance(result, cst.Call) or called_name(result) not in _CLAMPS or not params:
        return None
    name = params[0].name.value
    if isinstance(result.func, cst.Attribute) and is_name(result.func.value, name):
        return result
    given = argument(result, "input", 0)
    of_torch = (module.qualified(result.func) or "").startswith("torch.")
    return result if of_torch and given is not None and is_name(given, name) else None


def _is_parameter(module: FileFacts, node: Node) -> bool:
    """Whether a variable goes over the parameters of a model, or is a weight or bias."""
    if isinstance(node, cst.Attribute):
        return node.attr.value in ("weight", "bias")
    binding = module.names.definition(node) if isinstance(node, cst.Name) else None
    if binding is None or binding.how != "for" or binding.value is None:
        return False
    calls = module.tree.within(binding.value, cst.Call)
    return any(called_name(call) in ("parameters", "named_parameters") for call in calls)


def _scaled_step(module: FileFacts, hook: cst.Call) -> LoopEvent | None:
    """The step of a scaler, if every loss in the files that have the model is scaled."""
    home = module.tree.home(hook)
    sites = module.calls_in_loop.sites(home) if isinstance(home, cst.FunctionDef) else []
    roots = dict.fromkeys([module.tree.root, *(module.tree.root_of(site) for site in sites)])
    backwards = [event for root in roots for event in module.order.events_in(root, Action.BACKWARD)]
    steps = [event for root in roots for event in module.order.events_in(root, Action.STEP)]
    if not backwards or any(event.scaler is None for event in (*backwards, *steps)):
        return None
    enabled = (step for step in steps if step.scaler is not None and not _is_disabled(module, step.scaler))
    return next(enabled, None)


# -- the order of a step --------------------------------------------------------------------------------------


def _state(path: ExecutionPath, index: int) -> tuple[_State, LoopEvent | None]:
    """The state of the gradients that are clipped on one path, and the scaled step that follows."""
    before = path[:index]
    last = max((i for i, event in enumerate(before) if event.action is Action.BACKWARD), default=None)
    step = next((event for event in path[index + 1 :] if event.action is Action.STEP), None)
    if last is None or path[last].scaler is None:
        return _State.APART, None
    if step is None or step.scaler is None:
        return _State.APART, None
    if any(event.action in _BREAKS for event in path[last:index]):
        return _State.PLAIN, None
    return _State.SCALED, step


def _is_disabled(module: FileFacts, scaler: Node) -> bool:
    made = module.kinds.construction(scaler)
    arguments = made.args if made is not None else ()
    return any(
        arg.keyword is not None and arg.keyword.value == "enabled" and module.boolean(arg.value) is False
        for arg in arguments
    )


def _fix(module: FileFacts, clip: LoopEvent, step: LoopEvent) -> ProposedFix | None:
    if step.via or step.scaler is None or dotted(step.subject) is None:
        return None
    code = f"{module.verbatim(step.scaler)}.unscale_({module.verbatim(step.subject)})"
    return ProposedFix(f"insert `{code}`", (insert_line_before(module.tree, clip.call, code),))
