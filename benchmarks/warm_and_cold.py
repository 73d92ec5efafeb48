"""Edit a small project at random, and compare what a warm run says with what a cold one says after each edit.

    python benchmarks/warm_and_cold.py --edits 2000 --seed 7

Exit status: 0; 1 if they ever differ.
"""

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edits", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument(
        "--seed", type=int, default=1, help="the first seed; each 200 edits have one of their own"
    )
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    from edited_project import differences

    different = 0
    for start in range(0, arguments.edits, 200):
        seed = arguments.seed + start // 200
        with tempfile.TemporaryDirectory() as folder:
            edits = min(200, arguments.edits - start)
            for number, what, _, _ in differences(Path(folder, "project"), seed, edits):
                different += 1
                print(f"seed {seed}, edit {number}: {what}", flush=True)
    print(f"{arguments.edits} edits, {different} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
