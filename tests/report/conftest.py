"""The sample entries and the small run of other areas' tests serve here too."""

import sys
from pathlib import Path

for area in ("leaderboard", "runtime"):
    sys.path.insert(0, str(Path(__file__).parents[1] / area))
