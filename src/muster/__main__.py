"""``python -m muster``: the same as ``muster``."""

from muster.cli.main import main

main()
