"""Functions of numpy and of other libraries that make one number of many: means, sums and scores."""

from ta_lint.dryrun.machine.amounts import NOTHING, averaged, gone_over, is_of_model, side_by_side
from ta_lint.dryrun.machine.batches import Amount, amount, of_batch
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import ARRAY, method, stub
from ta_lint.dryrun.stubs.plain import numbers
from ta_lint.dryrun.values import DATA, Unknown, Value, cuts_of

_MEANS = "numpy.average numpy.mean numpy.nanmean statistics.fmean statistics.mean"
_SUMS = "math.fsum numpy.nansum numpy.sum"
_ARRAYS = "numpy.concatenate numpy.hstack numpy.stack numpy.vstack"
_SCORES = """
    nltk.translate.bleu_score.corpus_bleu sacrebleu.corpus_bleu sklearn.metrics.accuracy_score sklearn.metrics.average_precision_score
    sklearn.metrics.balanced_accuracy_score sklearn.metrics.cohen_kappa_score sklearn.metrics.f1_score sklearn.metrics.fbeta_score
    sklearn.metrics.jaccard_score sklearn.metrics.log_loss sklearn.metrics.matthews_corrcoef sklearn.metrics.mean_absolute_error
    sklearn.metrics.mean_squared_error sklearn.metrics.precision_score sklearn.metrics.r2_score sklearn.metrics.recall_score
    sklearn.metrics.roc_auc_score
"""
"""Numbers about what a model puts out."""


def _reduced(made: Call, *, grows: bool) -> Value:
    given = made.args[0] if made.args else made.kwargs.get("a")
    own, result = side_by_side(given), numbers(made)
    whole = len(made.args) == 1 and not made.kwargs.keys() & {"axis", "weights"}
    if isinstance(result, Unknown) and whole:
        result.amount = _of_all(made, given, own, grows=grows)
    return result


def _of_all(made: Call, given: Value | None, own: Amount | None, *, grows: bool) -> Amount | None:
    if own is not None:
        return averaged(made.machine, own, None, made.node, is_sum=grows) if own.is_list else own
    return of_batch(made.machine, grows=grows) if given is not None and cuts_of(given) else None


@stub(*_MEANS.split())
@method(ARRAY, "mean")
def _mean(made: Call) -> Value:
    return _reduced(made, grows=False)


@stub(*_SUMS.split())
@method(ARRAY, "sum")
def _sum(made: Call) -> Value:
    return _reduced(made, grows=True)


@stub(*_ARRAYS.split())
def _array(made: Call) -> Value:
    result = numbers(made)
    if made.args:
        gone_over(made.machine, made.args[0], made.node)
    if isinstance(result, Unknown) and made.args:
        result.amount = side_by_side(made.args[0])
    return result


@stub("numpy.zeros", "numpy.zeros_like")
def _zeros(made: Call) -> Value:
    return Unknown(NOTHING, DATA)


@method(ARRAY, "item")
def _item(made: Call) -> Value:
    return Unknown("numbers of an array", "float", cuts=cuts_of(made.args[0]), amount=amount(made.args[0]))


@stub(*_SCORES.split())
def _score(made: Call) -> Value:
    result = numbers(made)
    values = [*made.values()]
    for one in values:
        gone_over(made.machine, one, made.node)
    if isinstance(result, Unknown) and any(map(is_of_model, values)) and not any(map(side_by_side, values)):
        result.amount = of_batch(made.machine)
    return result
