"""The runs and samples of other areas' tests serve here too."""

import sys
from pathlib import Path

for area in ("leaderboard", "runtime", "functions", "knowledge"):
    sys.path.insert(0, str(Path(__file__).parents[1] / area))
