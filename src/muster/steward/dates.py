"""End dates: when to say that one is near."""

from muster.model.units import DAY

_PART_OF_LIFE = 0.1


def warn_at(begun: float, until: float) -> float:
    """A day before the end, or for what lives shortly when a tenth of its life is left."""
    return until - min(DAY, _PART_OF_LIFE * max(0.0, until - begun))
