"""Where modules were put into evaluation mode, with no way back to training mode since."""

from dataclasses import dataclass

from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import FALSE, Hidden, Mergeable, Object, Place, Value

SWITCHES = Hidden("how a module has come into its mode")


@dataclass(frozen=True, slots=True)
class Switches(Mergeable):
    """How a module has come into its mode."""

    places: frozenset[Place] = frozenset()
    """Where it was put into evaluation mode, on some path on which nothing has set the mode since."""
    settings: int = 0
    """How often something has put it into training mode, or perhaps has, on the way to here."""

    def either(self, other: "Switches") -> "Switches":
        """On one of two paths. If only one of them has put it into training mode, that may depend on the same as the training does."""
        both_alike = self.settings == other.settings
        places = self.places | other.places if both_alike else frozenset()
        return Switches(places, max(self.settings, other.settings))

    def is_settled(self, before: "Switches | None") -> bool:
        """Whether the next pass begins in the same modes."""
        return self.places == (before or NONE_SO_FAR).places


NONE_SO_FAR = Switches()


def evaluating_since(module: Object) -> frozenset[Place]:
    """Where a module was put into the evaluation mode that it is in, or perhaps is in."""
    switches: Switches = module.fields.get(SWITCHES, NONE_SO_FAR)
    return switches.places


def switched(machine: Machine, module: Object, wants: Value, place: Place) -> None:
    """A module is put into a mode here, of which perhaps nobody knows which."""
    before: Switches = module.fields.get(SWITCHES, NONE_SO_FAR)
    if wants == FALSE:
        after = Switches(frozenset({place}), before.settings)
    else:
        after = Switches(frozenset(), before.settings + 1)
    machine.modules_switched[module] = None
    machine.state.write(module.fields, SWITCHES, after)


def lost(machine: Machine) -> None:
    """Code out of sight may put any module into training mode."""
    for module in machine.modules_switched:
        if evaluating_since(module):
            settings = module.fields[SWITCHES].settings + 1
            machine.state.write(module.fields, SWITCHES, Switches(frozenset(), settings))
