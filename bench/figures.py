"""One figure: what was measured, and what was published."""

import msgspec


class Figure(msgspec.Struct, omit_defaults=True):
    """A measurement. ``ratio`` is value / published where something was published."""

    name: str
    variant: str
    policy: str
    value: float
    unit: str
    sd: float | None = None
    published: float | None = None
    ratio: float | None = None
    knows_durations: bool | None = None
    beside: dict[str, float] | None = None  # what else has to be looked at with it

    def __post_init__(self) -> None:
        if self.published and self.ratio is None:
            self.ratio = self.value / self.published
