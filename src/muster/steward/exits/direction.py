"""Which way a metric goes when it gets better, so that ``stalls`` means something.

The charter itself comes first: what ends the work as won is better than what does not, and what ends it as
lost is worse. Then the name, by its words, the last part of a path before the whole of it. Where both ways
are hinted at, or none, nothing is guessed: a wrong guess would stop work while it gets better.
"""

import functools
import re
from collections.abc import Iterable, Iterator

from muster.steward.exits.terms import Compares, Condition, Sign, Stalls, Way, terms_of

_LESS = """
loss losses err error errors wer cer ter eer ppl perplexity mae mse rmse nmse mape smape nll bpc bpb bpd
fid fvd lpips kl kld divergence cost regret ce bce xent crossentropy logloss brier ece distance residual
violations latency
"""
_MORE = """
acc accuracy f1 auc auroc auprc roc ap map score scores reward rewards return returns precision recall
bleu rouge meteor chrf iou miou dice psnr ssim r2 ndcg mrr hits em mcc kappa spearman pearson correlation
elo winrate success successes
"""
_LOWER, _HIGHER = frozenset(_LESS.split()), frozenset(_MORE.split())
# These rise while work goes on, and are no sign that it gets better.
_COUNTERS = frozenset({"step", "steps", "epoch", "epochs", "iteration", "iterations"})
# After these nobody knows what is left of the word.
_TURNED = frozenset({"neg", "negative", "minus", "inverse", "inv"})
_WORDS = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*")
_ENDINGS = 4  # so many letters make a word that is known at the end of another: valloss, testaccuracy
_UP = {Sign.ABOVE: Way.RISING, Sign.AT_LEAST: Way.RISING, Sign.BELOW: Way.FALLING, Sign.AT_MOST: Way.FALLING}
_OTHER = {Way.RISING: Way.FALLING, Way.FALLING: Way.RISING}


def way_of(metric: str, success: Iterable[Condition], failure: Iterable[Condition]) -> Way | None:
    """How the metric gets better, by the charter or by its name; None: nobody can tell."""
    said = {*_hints(metric, success, won=True), *_hints(metric, failure, won=False)}
    if len(said) == 1:
        return said.pop()
    return way_by_name(metric) or (Way.RISING if _COUNTERS & set(_words(metric)) else None)


def _hints(metric: str, conditions: Iterable[Condition], *, won: bool) -> Iterator[Way]:
    for term in (term for condition in conditions for term in terms_of(condition)):
        if term.metric != metric:
            continue
        if isinstance(term, Stalls) and term.way is not None:
            yield term.way
        elif isinstance(term, Compares) and (way := points(term, won)) is not None:
            yield way


def points(term: Compares, won: bool) -> Way | None:
    """Where a comparison says that better is: what is won is better, what is lost is worse."""
    way = _UP.get(term.sign)
    return _OTHER[way] if way is not None and not won else way


@functools.lru_cache(maxsize=4096)
def way_by_name(metric: str) -> Way | None:
    """``val_loss`` falls, ``eval/accuracy`` rises; ``accuracy_loss`` may do anything."""
    last = re.split(r"[/.]", metric)[-1]
    return _by_words(last) or (_by_words(metric) if not _known(last) else None)


def _by_words(text: str) -> Way | None:
    known = _known(text)
    return known.pop() if len(known) == 1 and not _TURNED & set(_words(text)) else None


def _known(text: str) -> set[Way]:
    words = _words(text)
    sides = ((Way.FALLING, _LOWER), (Way.RISING, _HIGHER))
    return {way for way, side in sides if any(_is_of(word, side) for word in words)}


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(text)]


def _is_of(word: str, side: frozenset[str]) -> bool:
    bare = word.rstrip("0123456789")
    return word in side or bare in side or any(len(w) >= _ENDINGS and bare.endswith(w) for w in side)
