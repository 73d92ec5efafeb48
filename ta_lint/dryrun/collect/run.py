"""All facts of a dry run."""

from ta_lint.dryrun.collect.accumulations import accumulations_of
from ta_lint.dryrun.collect.batch_means import batch_means_of
from ta_lint.dryrun.collect.compared import compared_of
from ta_lint.dryrun.collect.containers import plain_containers_of
from ta_lint.dryrun.collect.converted import converted_of
from ta_lint.dryrun.collect.copies import copies_of
from ta_lint.dryrun.collect.cuts import cuts_of
from ta_lint.dryrun.collect.decay import decays_of
from ta_lint.dryrun.collect.discards import discards_of
from ta_lint.dryrun.collect.flags import flags_of, rates_of
from ta_lint.dryrun.collect.folds import refolded_of
from ta_lint.dryrun.collect.frozen import frozen_parts_of
from ta_lint.dryrun.collect.gathered import gathered_of, metrics_of
from ta_lint.dryrun.collect.growths import growths_of
from ta_lint.dryrun.collect.half_updates import half_updates_of
from ta_lint.dryrun.collect.histories import histories_of
from ta_lint.dryrun.collect.inferences import inferences_of, infers
from ta_lint.dryrun.collect.kept import kept_of
from ta_lint.dryrun.collect.last_batches import last_batches_of
from ta_lint.dryrun.collect.layers import (
    always_dropped_of,
    cancelled_of,
    leaf_changes_of,
    paddings_filled_of,
    parameters_lost_of,
    used_up_of,
    windows_of,
)
from ta_lint.dryrun.collect.leftovers import leftovers_of
from ta_lint.dryrun.collect.loaders import loaders_of
from ta_lint.dryrun.collect.losses import backwards_of
from ta_lint.dryrun.collect.memberships import memberships_of
from ta_lint.dryrun.collect.norms import normed_of
from ta_lint.dryrun.collect.optimizers import optimizers_of
from ta_lint.dryrun.collect.outdated import outdated_of
from ta_lint.dryrun.collect.overlaps import overlaps_of
from ta_lint.dryrun.collect.reaches import reaches_of
from ta_lint.dryrun.collect.rebound import rebounds_of
from ta_lint.dryrun.collect.residuals import products_of, residuals_of
from ta_lint.dryrun.collect.resumptions import misread_of, resumptions_of
from ta_lint.dryrun.collect.retained import carried_of, retained_of
from ta_lint.dryrun.collect.schedules import calls_of, schedulers_of
from ta_lint.dryrun.collect.scored import clipped_scores_of, scored_of
from ta_lint.dryrun.collect.seeds import seedings_of
from ta_lint.dryrun.collect.summands import mixed_of, sums_of
from ta_lint.dryrun.collect.switches import switches_of
from ta_lint.dryrun.collect.syncs import syncs_of
from ta_lint.dryrun.collect.under_autocast import under_autocast_of
from ta_lint.dryrun.collect.wrappings import bypassed_of, moved_after_wrap_of, rewrapped_of
from ta_lint.events.event import Event
from ta_lint.events.loop import Loop
from ta_lint.events.run import Run


def run_of(events: list[Event]) -> Run:
    """The facts that these events make."""
    loop = Loop(
        histories=histories_of(events),
        schedules=calls_of(events),
        optimizers=optimizers_of(events),
        schedulers=schedulers_of(events),
    )
    return Run(
        loop,
        switches=switches_of(events),
        inferences=inferences_of(events),
        infers=infers(events),
        backwards=backwards_of(events),
        reaches=reaches_of(events),
        retained=retained_of(events),
        carried=carried_of(events),
        converted=converted_of(events),
        under_autocast=under_autocast_of(events),
        growths=growths_of(events),
        batch_means=batch_means_of(events),
        last_batches=last_batches_of(events),
        gathered=gathered_of(events),
        metrics=metrics_of(events),
        sums=sums_of(events),
        mixed_sums=mixed_of(events),
        memberships=memberships_of(events),
        outdated=outdated_of(events),
        frozen_parts=frozen_parts_of(events),
        flags=flags_of(events),
        rates=rates_of(events),
        plain_containers=plain_containers_of(events),
        rebounds=rebounds_of(events),
        optimizers=[*decays_of(events)],
        loaders=loaders_of(events),
        leaks=overlaps_of(events),
        refolded=refolded_of(events),
        cuts=cuts_of(events),
        leftovers=leftovers_of(events),
        accumulations=accumulations_of(events),
        copies=copies_of(events),
        discards=discards_of(events),
        clipped_scores=clipped_scores_of(events),
        residuals=residuals_of(events),
        products=products_of(events),
        compared=compared_of(events),
        normed=normed_of(events),
        half_updates=half_updates_of(events),
        windows=windows_of(events),
        always_dropped=always_dropped_of(events),
        leaf_changes=leaf_changes_of(events),
        paddings_filled=paddings_filled_of(events),
        parameters_lost=parameters_lost_of(events),
        used_up=used_up_of(events),
        cancelled=cancelled_of(events),
        scored=scored_of(events),
        seedings=seedings_of(events),
        syncs=syncs_of(events),
        resumptions=resumptions_of(events),
        kept=kept_of(events),
        misread=misread_of(events),
        rewrapped=rewrapped_of(events),
        moved_after_wrap=moved_after_wrap_of(events),
        bypassed=bypassed_of(events),
        broke_off=any(event.action == "broken off" for event in events),
    )
