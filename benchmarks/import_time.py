"""Time `import gape` (with all its names) and `import torch`: best of several new processes each.

    python benchmarks/import_time.py [repeats]

The goal is `import torch` + 0.3 s.
"""

import subprocess
import sys

GOAL = 0.3
STATEMENTS = {
    "import torch": "import torch",
    "import gape": "import gape",
    "from gape import *": "from gape import *",
}


def seconds(code: str) -> float:
    program = f"from time import perf_counter\nstart = perf_counter()\n{code}\nprint(perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(repeats: int = 5) -> None:
    # Alternating, so that other load on the machine affects all of them; the first round warms the disk cache.
    rounds = [{name: seconds(code) for name, code in STATEMENTS.items()} for _ in range(repeats + 1)][1:]
    best = {name: min(one[name] for one in rounds) for name in STATEMENTS}
    for name, time in best.items():
        print(f"{name:20} {time:6.3f} s")
    extra = best["from gape import *"] - best["import torch"]
    print(f"more than torch      {extra:6.3f} s   goal: at most {GOAL} s: {'reached' if extra <= GOAL else 'MISSED'}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
