"""What does temperature do to the weights, to sampling and to distillation?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import softscope
from softscope._text import Lang, Text, same
from softscope.experiments import chart, uses
from softscope.experiments.fold import part
from softscope.experiments.table import NATS, Cell, Column, Measured, Table, bracketed, label

if TYPE_CHECKING:
    from softscope._progress_bar import ProgressBar
    from softscope.experiments.result import Result

QUESTION = Text(
    en="What does temperature do to the weights, to sampling and to distillation?",
    zh="温度对权重、采样和蒸馏各有什么影响？",
)
SECONDS = 1.0
Array = np.ndarray[Any, Any]

ROWS = {"[1, 2, 3]": np.arange(1.0, 4.0), "[1, 2, 3, 4, 5]": np.arange(1.0, 6.0)}
TEMPERATURES = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
SAMPLED = (0.1, 0.2, 0.5, 0.7, 1.0, 1.3, 1.7, 2.5, 4.0)
ATTEMPTS = (1, 10, 50)
CANDIDATES, LOGIT_SD = 50, 2.0


def measure(progress: ProgressBar, *, seed: int = 0, problems: int = 4000) -> tuple[list[Table], list[Text]]:
    """Sweep T over fixed rows, a calibrated toy sampler, and students of a teacher."""
    rng = np.random.default_rng(seed)
    sweep, curve = _sweep(), _curve()
    progress(0.1)
    sampler, checks = _sampler(progress, rng, problems)
    soft = _soft_targets(rng)
    students = _students(progress, rng)
    used = uses.uses(LOGIT_SD * rng.standard_normal((problems, CANDIDATES)), rng)
    best = {k: max(sampler.records(), key=lambda r: r[f"pass_{k}"].value)["T"] for k in ATTEMPTS}
    plain = sweep.row(row="[1, 2, 3]", T=1.0)
    hard = students.row(target="labels")["kl"]
    warm = min((r for r in students.records() if r["T"] is not None), key=lambda r: r["kl"].value)
    unscaled = {r["T"]: r["bare"] for r in soft.records()}
    notes = [
        Text(
            en=f"Entropy grows with T from 0 to ln n: for [1, 2, 3] it is {plain['entropy']:.3f} nats at T = 1 and "
            f"{sweep.row(row='[1, 2, 3]', T=100.0)['entropy']:.4f} at T = 100 (ln 3 = {math.log(3):.4f}).",
            zh=f"熵随 T 从 0 增到 ln n：[1, 2, 3] 在 T = 1 时为 {plain['entropy']:.3f} 奈特，T = 100 时为 "
            f"{sweep.row(row='[1, 2, 3]', T=100.0)['entropy']:.4f}（ln 3 = {math.log(3):.4f}）。",
        ),
        uses.note(used),
        Text(
            en=f"A single attempt does best cold (T = {best[1]:g}), {ATTEMPTS[1]} attempts at T = "
            f"{best[ATTEMPTS[1]]:g}, {ATTEMPTS[2]} at T = {best[ATTEMPTS[2]]:g}: a low temperature helps pass@1, not "
            f"pass@k.",
            zh=f"只试一次时，低温最好（T = {best[1]:g}）；试 {ATTEMPTS[1]} 次时，T = {best[ATTEMPTS[1]]:g} 最好；试 "
            f"{ATTEMPTS[2]} 次时，T = {best[ATTEMPTS[2]]:g} 最好。低温有利于 pass@1，不利于 pass@k。",
        ),
        Text(
            en=f"With softscope.sample drawing the answers, the share of right first answers is within {checks:.1f} "
            f"standard errors of its probability.",
            zh=f"用 softscope.sample 实际采样时，首答正确率与其概率最多相差 {checks:.1f} 个标准误。",
        ),
        Text(
            en=f"Without the factor T², the gradient from soft targets shrinks like 1/T²: from {unscaled[1.0]:.3f} at "
            f"T = 1 to {unscaled[8.0]:.4f} at T = 8.",
            zh=f"不乘 T² 时，软目标给出的梯度按 1/T² 缩小：T = 1 时为 {unscaled[1.0]:.3f}，T = 8 时为 "
            f"{unscaled[8.0]:.4f}。",
        ),
        Text(
            en=f"A student taught on {STUDENT_ROWS} rows comes within {warm['kl'].value:.3f} nats of its teacher on "
            f"new rows with soft targets at T = {warm['T']:g}, and within {hard.value:.2f} with the teacher's hard "
            f"labels (both are linear, so a high T amounts to a regression on the teacher's logits).",
            zh=f"学生只用 {STUDENT_ROWS} 行训练：用 T = {warm['T']:g} 的软目标时，在新数据上与教师相差 "
            f"{warm['kl'].value:.3f} 奈特；用教师的硬标签时，相差 {hard.value:.2f} 奈特"
            f"（两者都是线性模型，高温相当于对教师的分数做回归）。",
        ),
    ]
    three = part(sweep, "three", lambda r: r["row"] == "[1, 2, 3]")
    return [three, used, sampler, soft, students, sweep, curve], notes


def _sweep() -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, x in ROWS.items():
        for t in TEMPERATURES:
            weights, state = softscope.softmax(x, temperature=t), softscope.partition(x, temperature=t)
            shares = bracketed(weights)
            rows.append((name, t, shares, float(state.entropy), float(state.effective_support)))
    return Table(
        "sweep",
        Text(en="Weights at several temperatures", zh="不同温度下的权重"),
        (
            label("row", Text(en="logits", zh="分数")),
            label("T", same("T")),
            Column("weights", Text(en="weights", zh="权重")),
            Column("entropy", Text(en="entropy", zh="熵"), NATS, digits=4),
            Column("support", Text(en="effective support", zh="有效支撑数"), digits=4),
        ),
        rows,
        dense=True,
    )


def _curve() -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, x in ROWS.items():
        for t in np.geomspace(0.01, 100.0, 81):
            state = softscope.partition(x, temperature=float(t))
            rows.append((name, float(t), float(state.entropy), float(state.entropy) / math.log(len(x))))
    return Table(
        "curve",
        Text(en="Entropy against temperature", zh="熵随温度的变化"),
        (
            label("row", Text(en="logits", zh="分数")),
            label("T", same("T")),
            Column("entropy", Text(en="entropy", zh="熵"), NATS),
            Column("share", Text(en="entropy / ln n", zh="熵 / ln n")),
        ),
        rows,
        dense=True,
    )


def _sampler(progress: ProgressBar, rng: np.random.Generator, problems: int) -> tuple[Table, float]:
    """Draw each problem's right answer from softmax(logits), so the model is calibrated at T = 1."""
    logits = LOGIT_SD * rng.standard_normal((problems, CANDIDATES))
    right = softscope.sample(logits, rng=rng)
    rows: list[tuple[Cell, ...]] = []
    furthest = 0.0
    for t in progress.through(SAMPLED, 0.1, 0.6):
        p = softscope.softmax(logits, temperature=t)[np.arange(problems), right]
        hits = softscope.sample(logits, temperature=t, rng=rng) == right
        error = math.sqrt(float(np.mean(p * (1.0 - p))) / problems)
        furthest = max(furthest, abs(float(hits.mean() - p.mean())) / error)
        solved = [Measured.of(1.0 - (1.0 - p) ** k) for k in ATTEMPTS]
        rows.append((t, *solved, float(softscope.partition(logits, temperature=t).entropy.mean()), problems))
    table = Table(
        "sampler",
        Text(
            en=f"A toy sampler with {CANDIDATES} candidates: share of problems solved",
            zh=f"有 {CANDIDATES} 个候选答案的玩具采样器：解出题目的比例",
        ),
        (
            label("T", same("T")),
            *(Column(f"pass_{k}", same(f"pass@{k}")) for k in ATTEMPTS),
            Column("entropy", Text(en="mean entropy", zh="平均熵"), NATS),
            Column("problems", Text(en="problems", zh="题数")),
        ),
        rows,
    )
    return table, furthest


def _soft_targets(rng: np.random.Generator) -> Table:
    """Measure the effect of T on a teacher's targets and on the gradient they give a uniform student."""
    teacher = 3.0 * rng.standard_normal((2000, 10))
    rows: list[tuple[Cell, ...]] = []
    for t in (1.0, 2.0, 4.0, 8.0, 16.0):
        target = softscope.softmax(teacher, temperature=t)
        bare = np.linalg.norm((0.1 - target) / t, axis=-1).mean()  # at equal student logits: ∇KL(teacher ‖ student)
        entropy = Measured.of(softscope.partition(teacher, temperature=t).entropy)
        rows.append((t, entropy, float(bare), float(bare * t * t), len(teacher)))
    return Table(
        "soft_targets",
        Text(en="Soft targets of a teacher with 10 classes", zh="10 类的教师给出的软目标"),
        (
            label("T", same("T")),
            Column("entropy", Text(en="entropy of the targets", zh="软目标的熵"), NATS),
            Column("bare", Text(en="gradient norm without T²", zh="不乘 T² 的梯度范数"), digits=4),
            Column("scaled", Text(en="gradient norm with T²", zh="乘 T² 的梯度范数"), digits=4),
            Column("rows", Text(en="rows", zh="行数")),
        ),
        rows,
    )


STUDENT_ROWS, FEATURES, CLASSES, REPEATS = 40, 8, 10, 12


def _students(progress: ProgressBar, rng: np.random.Generator) -> Table:
    """Train linear students on a linear teacher's labels or soft targets; test on new rows at T = 1."""
    kl: dict[float | None, list[float]] = {t: [] for t in (None, 1.0, 2.0, 4.0, 8.0)}
    agree: dict[float | None, list[float]] = {t: [] for t in kl}
    for _ in progress.through(range(REPEATS), 0.6, 1.0):
        teacher = rng.standard_normal((FEATURES, CLASSES))
        x, unseen = rng.standard_normal((STUDENT_ROWS, FEATURES)), rng.standard_normal((1000, FEATURES))
        for t in kl:
            w = taught(x, x @ teacher, t)
            loss = softscope.distillation_loss(unseen @ w, unseen @ teacher, temperature=1.0)
            kl[t].append(float(loss))
            agree[t].append(float(np.mean((unseen @ w).argmax(-1) == (unseen @ teacher).argmax(-1))))
    labels, soft = Text(en="labels only", zh="只用标签"), Text(en="soft targets", zh="软目标")
    rows: list[tuple[Cell, ...]] = [
        (labels if t is None else soft, t, Measured.of(kl[t]), Measured.of(agree[t]), REPEATS) for t in kl
    ]
    return Table(
        "students",
        Text(en=f"Students taught on {STUDENT_ROWS} rows", zh=f"用 {STUDENT_ROWS} 行训练的学生"),
        (
            label("target", Text(en="taught with", zh="训练目标")),
            label("T", same("T")),
            Column("kl", Text(en="KL(teacher ‖ student) on new rows", zh="新数据上的 KL(教师 ‖ 学生)"), NATS),
            Column("agree", Text(en="share of same answers", zh="答案相同的比例")),
            Column("repeats", Text(en="repeats", zh="重复次数")),
        ),
        rows,
    )


def taught(x: Array, teacher: Array, temperature: float | None, steps: int = 200) -> Array:
    """Run gradient descent on T²·KL, or on the cross-entropy with the teacher's labels."""
    t = 1.0 if temperature is None else temperature
    target = np.eye(CLASSES)[teacher.argmax(-1)] if temperature is None else softscope.softmax(teacher, temperature=t)
    w = np.zeros((x.shape[1], CLASSES))
    for _ in range(steps):
        # T²·∂KL/∂logits = T·(softmax(student/T) − target)
        w -= 0.5 * x.T @ (t * (softscope.softmax(x @ w, temperature=t) - target)) / len(x)
    return w


def draw(result: Result, lang: Lang) -> Any:
    """Plot entropy against T, pass@k against T, the students, and what the recommended temperatures do."""
    heat = chart.curves(
        result["curve"].records(),
        chart.Axis("T", "T", log=True),
        chart.Axis("share", Text(en="entropy / ln n", zh="熵 / ln n").of(lang), domain=(0.0, 1.0)),
        ("row", Text(en="logits", zh="分数").of(lang)),
        title=Text(en="From one-hot to uniform", zh="从 one-hot 到均匀").of(lang),
        points=False,
    )
    solved = [
        {"T": r["T"], "name": f"pass@{k}", "share": value, "low": value - 2 * error, "high": value + 2 * error}
        for k in ATTEMPTS
        for r in result["sampler"].records()
        for value, error in [r[f"pass_{k}"]]
    ]
    passes = chart.curves(
        solved,
        chart.Axis("T", "T", log=True, values=(0.1, 0.2, 0.5, 1, 2, 4)),
        chart.Axis("share", Text(en="share of problems solved", zh="解出题目的比例").of(lang), domain=(0.0, 1.0)),
        ("name", Text(en="attempts", zh="尝试次数").of(lang)),
        error=("low", "high"),
        title=Text(en="Low T suits few attempts, not many", zh="尝试次数少时宜低温，多时则不然").of(lang),
    )
    students = [
        {
            "name": r["target"].of(lang)
            + ("" if r["T"] is None else Text(en=", ", zh="，").of(lang) + f"T = {r['T']:g}"),
            "kl": r["kl"].value,
            "low": r["kl"].value - 2 * r["kl"].error,
            "high": r["kl"].value + 2 * r["kl"].error,
        }
        for r in result["students"].records()
    ]
    taught = chart.bars(
        students,
        ("name", ""),
        chart.Axis("kl", Text(en="KL to the teacher on new rows (nats)", zh="新数据上与教师的 KL（奈特）").of(lang)),
        error=("low", "high"),
        digits=".3f",
        title=Text(en="Distillation: labels against soft targets", zh="蒸馏：标签与软目标的比较").of(lang),
    )
    return chart.beside(heat, passes, taught, uses.draw(result, lang))
