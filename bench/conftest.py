"""Let the benchmarks import what they share with ratios.py by its plain name, as that script does."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
