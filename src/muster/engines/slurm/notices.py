"""What was in an answer that nobody knew: told once, not at every pass.

Readers write here what they met and could not understand (a state, a reason, a key, a value of another
kind). The value itself is shown as unknown; whoever runs the pass takes the new sentences and tells
them.
"""

_MOST = 1000  # kinds of surprise: a broken Slurm must not fill our memory
_LETTERS = 80


class Notices:
    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()
        self._fresh: list[str] = []

    def note(self, kind: str, what: object, where: str) -> None:
        """``kind`` is "state", "reason", "key" or "value"."""
        said = str(what)[:_LETTERS]
        if (kind, said) in self._known or len(self._known) >= _MOST:
            return
        self._known.add((kind, said))
        self._fresh.append(
            f"Slurm's {where} has a {kind} that Muster does not know: {said!r}; shown as unknown"
        )

    def first(self, kind: str, what: str) -> bool:
        """Whether this is asked for the first time: what is looked into once, is looked into then."""
        if (kind, what) in self._known or len(self._known) >= _MOST:
            return False
        self._known.add((kind, what))
        return True

    def say(self, sentence: str) -> None:
        """A sentence of its own, told once."""
        if self.first("said", sentence):
            self._fresh.append(sentence)

    def take(self) -> list[str]:
        """What is new since the last time."""
        fresh, self._fresh = self._fresh, []
        return fresh
