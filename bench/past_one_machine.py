"""What would the messages cost on 1,024 or 16,384 ranks? A simulation: formulas, and a machine of four numbers.

    .venv/bin/python bench/past_one_machine.py [--latency 5] [--bandwidth 50] [--compute 400] [--chart FILE.svg]
    .venv/bin/python bench/past_one_machine.py --measure

Bytes and messages come from softscope.distributed.traffic and softscope.doctor.ranks.traffic, which tests compare with
counted messages of 2, 4 and 8 ranks. Times come from bench/simulated.py. With --measure, the program measures the four
numbers of this computer, predicts the times of 2 and 4 ranks with them, and measures these too.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import simulated
from simulated import LOGITS, PEER, Machine, Model

from softscope._text import LANGS, Lang, Text
from softscope.distributed import traffic
from softscope.doctor.ranks import traffic as probe_traffic
from softscope.experiments import chart

MANY = (1024, 16_384)
STEPS = 100_000  # of a training run, for averages
MODEL_RANKS = 64  # that share out the parameters of one copy of the model
DRAWN = tuple(2**e for e in range(15))
SHOWN = (2, 8, 64, 1024, 16_384)
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))

Lines = dict[str, Text]
PANELS: dict[str, tuple[Callable[..., dict[str, float]], Text, Lines]] = {
    "probe": (
        simulated.probe,
        Text(en="The probe, for each read step", zh="探针，每个读取的步"),
        {
            "tree": Text(en="sums of every head up a tree (ours)", zh="每个头的和沿树上行（我们）"),
            "gathered": Text(en="the same, gathered to one rank", zh="同样的内容，收集到一个 rank"),
            "peer": Text(en="all-reduce of 132 kB (a peer)", zh="132 kB 的 all-reduce（同类工具）"),
        },
    ),
    "loss": (
        simulated.loss,
        Text(en="Messages of cross-entropy", zh="交叉熵的消息"),
        {
            "states": Text(en="all-gather of row states (ours)", zh="all-gather 行状态（我们）"),
            "logits": Text(en="all-gather of logits", zh="all-gather logits"),
            "reduced": Text(en="three all-reduces", zh="三次 all-reduce"),
            "planned": Text(en="row states merged by halves (planned)", zh="行状态对半合并（计划）"),
        },
    ),
    "attention": (
        simulated.attention,
        Text(en="Causal attention of a layer, forward", zh="一层的因果注意力，前向"),
        {
            "ring": Text(en="ring (ours)", zh="环（我们）"),
            "gathered": Text(en="all-gather of keys, then compute", zh="先 all-gather 键，再计算"),
            "planned": Text(en="heads shared out first, then a ring (planned)", zh="先分头，再用环（计划）"),
        },
    ),
}


def shown(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """Three digits and a unit."""
    size, unit = next((pair for pair in units if value >= pair[0]), units[-1])
    number = value / size
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:#.3g} {unit}"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"


def traffic_table(model: Model) -> str:
    """Bytes that a rank sends, for the numbers of ranks in MANY."""
    heads = model.layers * model.heads
    read = {ranks: probe_traffic.of_read_step(rank=1, ranks=ranks, heads=heads).bytes for ranks in MANY}
    keys = {ranks: [model.tokens // ranks] * ranks for ranks in MANY}
    gradients = model.key_bytes * 4 // model.itemsize
    there = {r: traffic.attention_forward(keys[r], model.key_bytes, r - 1)[0] for r in MANY}
    back = {r: traffic.attention_backward(keys[r], model.key_bytes, r - 1, gradients)[0] for r in MANY}
    rows: dict[str, Callable[[int], float]] = {
        "probe, a read step: 2 messages": lambda r: read[r],
        "probe, on average": lambda r: probe_traffic.average_bytes(rank=1, ranks=r, heads=heads, steps=STEPS),
        "received by the probe's first rank: 2·⌈log₂ W⌉ messages": lambda r: probe_traffic.levels(r) * read[r],
        "a peer's all-reduce": lambda r: _reduced(r, PEER),
        "gradients, all-reduced": lambda r: _reduced(r // MODEL_RANKS, 2 * model.parameters / MODEL_RANKS),
        "`cross_entropy`: 1 message": lambda r: traffic.bytes_sent(
            "cross_entropy", rows=model.rows, ranks=r, dtype=LOGITS
        ),
        "three all-reduces instead": lambda r: _reduced(r, 12 * model.rows),
        "gathered logits instead": lambda r: traffic.gathered_logits(
            rows=model.rows, classes=model.vocabulary, ranks=r, dtype=LOGITS
        ),
        "`attention`, forward: W − 1 messages": lambda r: there[r].bytes,
        "`attention`, backward: 2·W − 1 messages": lambda r: back[r].bytes,
    }
    body = [[name, *(shown(sent(ranks), UNITS) for ranks in MANY)] for name, sent in rows.items()]
    probed, gradient = rows["probe, on average"], rows["gradients, all-reduced"]
    shares = [f"{probed(ranks) / gradient(ranks):.4%}" for ranks in MANY]
    body.insert(list(rows).index("gradients, all-reduced") + 1, ["the probe's share of gradients, on average", *shares])
    return table(["bytes that each rank sends", *(f"{ranks:,} ranks" for ranks in MANY)], body)


def _reduced(ranks: int, size: float) -> float:
    return 2 * (ranks - 1) / ranks * size


def time_table(machine: Machine, model: Model) -> str:
    body = []
    for name, (simulate, _, lines) in PANELS.items():
        found = [simulate(machine, model, ranks) for ranks in SHOWN]
        for key, line in lines.items():
            body.append([f"{name}: {line.en}", *(shown(times[key], TIMES) for times in found)])
    return table(["", *(f"{ranks:,} ranks" for ranks in SHOWN)], body)


def limits(machine: Machine, model: Model) -> str:
    """From how many ranks on something else is better."""
    rows = []
    for tokens in (256, 4096, model.tokens):
        small = dataclasses.replace(model, tokens=tokens)

        def slower(ranks: int, small: Model = small) -> bool:
            times = simulated.loss(machine, small, ranks)
            return times["states"] > times["reduced"]

        rows.append([f"three all-reduces are faster than row states, {tokens:,} rows", _from(slower)])
    for causal, kv_heads in itertools.product((False, True), (model.kv_heads, 8)):
        grouped = dataclasses.replace(model, kv_heads=kv_heads)

        def exposed(ranks: int, grouped: Model = grouped, causal: bool = causal) -> bool:
            times = simulated.attention(machine, grouped, ranks, causal=causal)
            return times["hop"] > times["block"]

        name = f"a hop of {'causal' if causal else 'full'} attention outlasts its work, {kv_heads} key heads"
        rows.append([name, _from(exposed)])
    return table(["", "from so many ranks on"], rows)


def _from(wanted: Callable[[int], bool]) -> str:
    found = next((ranks for ranks in range(2, DRAWN[-1] + 1) if wanted(ranks)), None)
    return "never" if found is None else f"{found:,}"


def draw(machine: Machine, model: Model, path: Path, lang: Lang) -> None:
    panels = []
    across = chart.Axis("ranks", Text(en="ranks", zh="rank 数").of(lang), log=True, values=(1, 8, 64, 1024, 16_384))
    up = chart.Axis("time", Text(en="seconds", zh="秒").of(lang), log=True)
    for simulate, title, lines in PANELS.values():
        rows: list[dict[str, Any]] = []
        for key, line in lines.items():
            for ranks in DRAWN:
                took = simulate(machine, model, ranks)[key] or None  # one rank sends nothing
                rows.append({"ranks": ranks, "time": took, "who": line.of(lang)})
        panels.append(chart.curves(rows, across, up, ("who", ""), title=title.of(lang), width=380))
    title = Text(
        en="Simulated: {} layers × {} heads, {:,} tokens, vocabulary {:,}; {:g} µs, {:g} GB/s, {:g} Tflop/s",
        zh="模拟：{} 层 × {} 头，{:,} 个 token，词表 {:,}；{:g} µs，{:g} GB/s，{:g} Tflop/s",
    ).format(
        model.layers, model.heads, model.tokens, model.vocabulary,
        1e6 * machine.latency, machine.bandwidth / 1e9, machine.flops / 1e12,
    )  # fmt: skip
    chart.dressed(chart.beside(*panels, columns=1), title.of(lang)).save(str(path), format=path.suffix[1:])
    print(f"chart written to {path}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\n{simulated.__doc__}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual, size = Machine(), Model()
    parser.add_argument("--latency", type=float, default=1e6 * usual.latency, help="µs for each message (%(default)g)")
    parser.add_argument(
        "--bandwidth", type=float, default=usual.bandwidth / 1e9, help="GB/s of a link, each way (%(default)g)"
    )
    parser.add_argument("--compute", type=float, default=usual.flops / 1e12, help="Tflop/s of a rank (%(default)g)")
    parser.add_argument(
        "--merge", type=float, default=1e9 * usual.merge, help="ns to merge a byte of the probe's sums (%(default)g)"
    )
    for name, value in vars(size).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value, help="of the model (%(default)s)")
    parser.add_argument("--chart", type=Path, metavar="FILE.svg", help="also draw time against ranks")
    parser.add_argument("--lang", choices=LANGS, default="en", help="of the chart")
    parser.add_argument("--measure", action="store_true", help="measure this computer, and check predictions for it")
    given = parser.parse_args()
    if given.measure:
        from measured import check

        print(check(table))
        return
    machine = Machine(1e-6 * given.latency, 1e9 * given.bandwidth, 1e12 * given.compute, 1e-9 * given.merge)
    model = Model(**{name: getattr(given, name) for name in vars(size)})
    print(traffic_table(model), time_table(machine, model), limits(machine, model), sep="\n")
    if given.chart is not None:
        draw(machine, model, given.chart, given.lang)


if __name__ == "__main__":
    main()
