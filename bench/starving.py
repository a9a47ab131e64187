"""Which models without 1/√d starve for good, and which only learn late?

    .venv/bin/python bench/starving.py [--quick]

Unit: share of right answers on new sequences, the mean of 5 seeds and the lowest and highest, half-way and at the end.
If it is the same at both, training longer does not help. No times are measured, so a busy machine changes nothing.
"""

from __future__ import annotations

import functools
from concurrent.futures import ProcessPoolExecutor

from harness import arguments

from softscope.experiments.starving import RATES, SEEDS, Run, Setting, flip, run

STEPS = 2400
SHARES = (1, 1.25, 1.5, 2, 3, 4)
DRAWN = {
    (d, pairs): [Setting(d=d, pairs=pairs, keys=int(share * pairs)) for share in shares]
    for d, pairs, shares in ((16, 16, (1, 4)), (64, 16, SHARES), (64, 8, SHARES), (256, 16, (1, 1.5, 2, 4)))
}
CHANGED = {
    "64 in fixed groups of 16": Setting(keys=64, company="fixed"),
    "16 of 16, a tenth of the rate": Setting(slower=10.0),
}


def trained(job: tuple[Setting, int], steps: int) -> Run:
    setting, seed = job
    return run(setting, steps=steps, seed=seed)


def cell(accuracies: list[float]) -> str:
    return f"{sum(accuracies) / len(accuracies):.2f} ({min(accuracies):.2f}–{max(accuracies):.2f})"


def main() -> None:
    steps = STEPS // 20 if arguments(__doc__).quick else STEPS
    rows = {(d, f"{s.pairs} of {s.keys}"): s for (d, _), settings in DRAWN.items() for s in settings}
    rows |= {(s.d, name): s for name, s in CHANGED.items()}
    jobs = [(s._replace(optimizer=name), seed) for s in rows.values() for name in RATES for seed in SEEDS]
    with ProcessPoolExecutor() as pool:
        found = dict(zip(jobs, pool.map(functools.partial(trained, steps=steps), jobs), strict=True))

    def accuracies(setting: Setting, name: str, after: int) -> list[float]:
        return [found[setting._replace(optimizer=name), seed].accuracy(after) for seed in SEEDS]

    columns = [(name, after) for name in RATES for after in (steps // 2, steps)]
    print(f"| d | keys shown | {' | '.join(f'{name}, {after:,} steps' for name, after in columns)} |")
    print("|" + "---|" * (2 + len(columns)))
    for (d, shown), setting in rows.items():
        print(f"| {d} | {shown} | {' | '.join(cell(accuracies(setting, *column)) for column in columns)} |")
    for (d, pairs), settings in DRAWN.items():
        for name in RATES:
            by_keys = {s.keys: accuracies(s, name, steps) for s in settings}
            print(f"d = {d}, {pairs} shown, {name}: {flip(by_keys)}")


if __name__ == "__main__":
    main()
