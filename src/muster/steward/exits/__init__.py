"""Exits: the conditions under which work ends, won or lost. The language, what it means, and looking at it.

parse     text → a condition (``lexer``, ``terms``, ``wrong``: the sentence that points at the letter)
compiled  the conditions of a charter → its exits; what ``stalls`` means is found out (``direction``)
sense     what can never be met, is met at once, or by what both win and lose
board     reports and time → what is met (``take``: what counts, ``looks``: what holds, ``memory``)
replay    when an exit would have ended work that is over (``hindsight``: and what was spent after that)
"""

from muster.steward.exits.board import Board, Silent
from muster.steward.exits.compiled import Exit, Exits, compiled, exits_of
from muster.steward.exits.parse import normal, parse_condition
from muster.steward.exits.replay import Hindsight, Report, first_met, would_have_stopped
from muster.steward.exits.sense import check_sense
from muster.steward.exits.watched import Met

__all__ = [
    "Board",
    "Exit",
    "Exits",
    "Hindsight",
    "Met",
    "Report",
    "Silent",
    "check_sense",
    "compiled",
    "exits_of",
    "first_met",
    "normal",
    "parse_condition",
    "would_have_stopped",
]
