"""Which models without 1/√d starve for good, and which only learn late?

    .venv/bin/python bench/starving.py [--quick]

Unit: share of right answers on new sequences, the mean of 5 seeds and the lowest and highest, half-way and at the end.
If it is the same at both, training longer does not help. Then the flip points, and whether a starved model recovers
once half of its keys are hidden at a time. No times are measured, so a busy machine changes nothing.
"""

from __future__ import annotations

import functools
from concurrent.futures import ProcessPoolExecutor

from harness import arguments

from softscope.experiments.starving import RATES, SEEDS, Run, Setting, flip, misled, model_of, run

STEPS = 1200
SHARES = (1, 1.25, 1.5, 2, 3, 4)
DRAWN = [
    [Setting(d=d, pairs=pairs, keys=int(share * pairs)) for share in shares]
    for d, pairs, shares in ((64, 16, SHARES), (64, 8, SHARES), (16, 16, (1, 4)), (256, 16, (1, 2, 4)))
]
CHANGED = {
    "64 in fixed groups of 16": Setting(keys=64, company="fixed"),
    "16 of 16, a tenth of the rate": Setting(slower=10.0),
}


def trained(job: tuple[Setting, int], steps: int) -> Run:
    setting, seed = job
    return run(setting, steps=steps, seed=seed)


def hidden(name: str, seed: int, steps: int) -> tuple[float, float, float]:
    """The share of rows blocked on a wrong key: starved, then with the same keys for longer, or with half of them."""
    same = Setting(optimizer=name)
    found = []
    for further in (same, same._replace(pairs=same.pairs // 2)):
        model = model_of(same, seed)
        before = run(same, steps=steps // 4, seed=seed, model=model).misled
        run(further, steps=steps // 2, seed=seed + 100, model=model)
        found.append(misled(model, same, seed))
    return before, *found


def cell(accuracies: list[float]) -> str:
    return f"{sum(accuracies) / len(accuracies):.2f} ({min(accuracies):.2f}–{max(accuracies):.2f})"


def main() -> None:
    steps = STEPS // 10 if arguments(__doc__).quick else STEPS
    columns = [(name, after) for name in RATES for after in (steps // 2, steps)]
    rows = [(f"{s.pairs} of {s.keys}", s) for settings in DRAWN for s in settings] + list(CHANGED.items())
    jobs = [(s._replace(optimizer=name), seed) for _, s in rows for name in RATES for seed in SEEDS]
    flips: dict[tuple[int, int, str], dict[int, list[float]]] = {}
    print(f"| d | keys shown | {' | '.join(f'{name}, {after:,} steps' for name, after in columns)} |")
    print("|" + "---|" * (2 + len(columns)))
    with ProcessPoolExecutor() as pool:
        found = pool.map(functools.partial(trained, steps=steps), jobs)
        for shown, setting in rows:
            runs = {name: [next(found) for _ in SEEDS] for name in RATES}
            by = {(name, after): [run.accuracy(after) for run in runs[name]] for name, after in columns}
            print(f"| {setting.d} | {shown} | {' | '.join(cell(by[column]) for column in columns)} |", flush=True)
            if shown not in CHANGED:
                for name in RATES:
                    flips.setdefault((setting.d, setting.pairs, name), {})[setting.keys] = by[name, steps]
    for (d, pairs, name), accuracies in flips.items():
        print(f"d = {d}, {pairs} shown, {name}: {flip(accuracies)}")
    for name in RATES:
        stages = zip(*(hidden(name, seed, steps) for seed in SEEDS), strict=True)
        starved, longer, half = (cell(list(stage)) for stage in stages)
        print(
            f"d = 64, 16 of 16, {name}, rows blocked on a wrong key: {starved} after {steps // 4:,} steps; {longer} "
            f"after {steps // 2:,} more; {half} if these show 8 of the 16"
        )


if __name__ == "__main__":
    main()
