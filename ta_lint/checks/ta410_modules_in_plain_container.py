"""TA410: modules or parameters kept in a list, dict or tuple on `self` are not registered."""

from collections.abc import Iterator

from ta_lint.facts import Module, Suspicion

# Most files with modules hold none in a container: what is assigned must hold a call that could make a layer, or be
# added to by one, or be a local container.
_IS = r" *+(?::[^=\n]++)?= *+"
_CONVERSION = r"(?:dict|enumerate|float|frozenset|getattr|int|len|list|max|min|range|round|set|sorted|str|sum|tuple|zip)\("
_MAKES = (
    r"(?:\b[A-Z]\w*\(|\bself\.\w+\(|(?<![\w.])(?!" + _CONVERSION + r")[a-z_]\w*\(|"
    r"\b(?:deepcopy|models\.\w+|create_model|from_pretrained)\()"
)
_BUILTIN = r"(?:list|tuple|dict|(?:\w+\.)?(?:OrderedDict|defaultdict))\("
_LITERAL = rf"(?:[\[{{][^\]}}]*?|\(\s*+|{_BUILTIN}[^)]*?){_MAKES}"
_ADDS = r"(?:\.(?:append|extend|insert|update)\(|\[.*\] *= *| *\+= *)\s*+[^\n]{0,30}?"
_FILLED = rf"(?:[\[{{]|{_BUILTIN})(?:.*+\n){{0,300}}?.*?\bself\.\1{_ADDS}(?:{_MAKES}|\w+\))"
_COMMA = r"[\w.]+\(.*\), *+(?:#.*)?$"
_LOCAL = rf"^ ++(\w++){_IS}(?:[\[{{]|list\(|dict\()(?:.*+\n){{1,60}}? ++self\.\w++{_IS}\2 *+(?:#.*)?$"
NEEDS = (rf"self\.(\w+){_IS}(?:{_LITERAL}|{_FILLED}|{_COMMA})|{_LOCAL}",)


def check(module: Module) -> Iterator[Suspicion]:
    for klass in module.classes.modules():
        for container in module.containers.of(klass):
            made = [
                (layer, node)
                for node in container.elements
                if (layer := module.layers.made(node)) is not None
            ]
            if not made or module.containers.hides(container) or module.containers.escapes(container):
                continue
            layer, node = made[0]
            held = f"`{layer}` in the plain {container.kind} `self.{container.name}`"
            message = f"{held} is not registered: not trained, moved or saved"
            yield Suspicion(container.statement, message, related=((node, f"`{layer}` is made here"),))
