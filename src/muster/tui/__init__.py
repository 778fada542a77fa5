"""``muster top``: the place and its jobs on a terminal, drawn from plain data, and live."""
