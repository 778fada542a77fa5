"""``python serve_on_slurm.py HOME SLURM_CONF MODE``: a Muster server that stands on Slurm."""

import logging
import sys

from muster.engines.slurm.settings import SlurmSettings
from muster.home import Home
from muster.server.config import read_config
from muster.server.serve import Settings, serve
from muster.server.slurm_footing import SlurmFooting


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s muster: %(message)s")
    folder, conf, mode = sys.argv[1:]
    home = Home(folder)
    settings = SlurmSettings(mode=mode, conf=conf, soon_seconds=10.0)  # type: ignore[arg-type]
    serve(home, read_config(home.configuration), Settings(), print, SlurmFooting(settings))


if __name__ == "__main__":
    main()
