"""Compare all decisions with the file, or write it: python -m tests.golden [--update] [policy ...]

One line for each policy, table, setting and field, so that a difference says what changed. A policy
whose package is not installed is left out and its lines are kept.
"""

from __future__ import annotations

import os
import sys
import time

# Before numpy is imported: the order of sums depends on the number of threads.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

from tests.golden import lines


def main(arguments: list[str]) -> int:
    """Exit status: 0 if nothing changed or the file was written."""
    names = [name for name in arguments if name != "--update"]
    expected, found = lines.read(), {}
    for case in lines.golden_cases():
        if names and case.policy.name not in names:
            continue
        began = time.perf_counter()
        found |= lines.lines_of(case)
        print(f"{case.name}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    looked_at = {line.partition(" | ")[0] for line in found}
    kept = {k: v for k, v in expected.items() if k.partition(" | ")[0] not in looked_at}
    changed = lines.differences({k: v for k, v in expected.items() if k not in kept}, found)
    print(f"{len(found)} lines, {len(changed)} changed", file=sys.stderr)
    if "--update" in arguments:
        lines.write(kept | found)
        return 0
    print("\n".join(changed))
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
