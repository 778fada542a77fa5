"""What is wrong with a source, said once and not at every look."""

import logging

from muster.model.job import JobId

log = logging.getLogger("muster")

_MOST_SAID = 20


class Trouble:
    """``now`` is a sentence for the job's owner; None: nothing is wrong, as far as is known."""

    def __init__(self, job: JobId, source: str) -> None:
        self._job, self._source = job, source
        self._said: set[str] = set()
        self.now: str | None = None

    def say(self, sentence: str) -> None:
        self.now = sentence
        if sentence not in self._said and len(self._said) < _MOST_SAID:
            self._said.add(sentence)
            log.warning("job %s, metrics from %s: %s", self._job, self._source, sentence)
