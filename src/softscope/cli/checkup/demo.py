"""Train the built-in patients live, treat them and train them on; then show verdicts, prescriptions and prognoses."""

from __future__ import annotations

import dataclasses
import io
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from softscope.cli.layout import pad
from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Sequence

    from softscope.cli.console import Console
    from softscope.doctor.diagnosis import Diagnosis
    from softscope.doctor.patients import Trained


class Case(NamedTuple):
    """A patient after training, and what the doctor says about it."""

    trained: Trained
    diagnosis: Diagnosis


def run(console: Console, mute: Sequence[str], aloud: bool, report: pathlib.Path | None) -> list[Diagnosis]:
    """Train all patients; if `aloud`, print everything, otherwise only write the report if one is requested."""
    from softscope._installed import missing
    from softscope.cli.checkup import writing
    from softscope.doctor import patients

    if missing(("torch",)):
        raise UsageError("checkup.torch")
    stage = console if aloud else dataclasses.replace(console, stream=io.StringIO())
    sizes = {"d": patients.WIDTH, "pairs": patients.PAIRS, "keys": patients.KEYS, "gain": f"{patients.GAIN:g}"}
    stage.paragraph(stage.say("checkup.opening", steps=patients.STEPS, **sizes), "")
    stage.write()
    cases = _trained_on(_examined(stage, console, mute), console)
    for case in cases:
        stage.write()
        writing.text(case.diagnosis, stage)
    _course(cases, stage)
    _difference(cases, stage)
    diagnoses = [case.diagnosis for case in cases]
    if report is not None:
        writing.page_to(report, diagnoses, stage, tell=True)
    elif aloud:
        _keep(diagnoses, stage)
    return diagnoses


def _examined(stage: Console, console: Console, mute: Sequence[str]) -> list[Case]:
    """Train every patient under observation, try the heads that are suspected and then remedies, and judge."""
    from softscope._progress_bar import ProgressBar
    from softscope.cli.checkup.live import Table
    from softscope.doctor import patients
    from softscope.doctor.diagnosis import diagnose

    table = Table(stage, patients.PATIENTS, patients.STEPS)
    waiting = ProgressBar(console.say("checkup.progress.patients"))  # for when the table is hidden
    cases: list[Case] = []

    def step(name: str, at: int, of: int) -> None:
        table.progress(name, at, of)
        if not table.live:
            waiting((len(cases) + at / of) / len(patients.PATIENTS))

    try:
        for patient in patients.PATIENTS:
            watch, progress = partial(table.read, patient.name), partial(step, patient.name)
            trained = patients.train(patient, steps=patients.STEPS, watch=watch, progress=progress)
            found = diagnose(trained.history, patient.title, mute=mute, trials=patients.trials(trained))
            table.judged(patient.name, next(iter(found.view.states.values())).state)
            cases.append(Case(trained, patients.tried(trained, found)))
    finally:
        waiting.wipe()
    table.close()
    return cases


def _trained_on(cases: Sequence[Case], console: Console) -> list[Case]:
    """Train every patient but the healthy one on, untreated and with the first prescription that code can carry out."""
    from softscope._progress_bar import ProgressBar
    from softscope.doctor import patients

    waiting = ProgressBar(console.say("checkup.progress.on"))
    ill = [case for case in cases if case.trained.patient is not patients.HEALTHY]
    done: list[Case] = []

    def progress(share: float) -> None:
        waiting((len(done) + share) / len(ill))

    try:
        for trained, diagnosis in ill:
            treat = next((given.apply for given in diagnosis.prescriptions if given.treatment is not None), None)
            found = patients.prognosis(trained, treat, steps=patients.MORE, progress=progress)
            done.append(Case(trained, dataclasses.replace(diagnosis, prognosis=found)))
    finally:
        waiting.wipe()
    after = {case.trained.patient.name: case for case in done}
    return [after.get(case.trained.patient.name, case) for case in cases]


def _keep(diagnoses: Sequence[Diagnosis], console: Console) -> None:
    """Write the page beside the learner's progress, over the last one: a new folder each time would pile up."""
    from softscope.cli.checkup import writing
    from softscope.lab.state_folder import state_folder

    path = state_folder() / "checkup.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writing.page_to(path, diagnoses, console, tell=True)
    except (OSError, UsageError) as error:
        reason = error.values["reason"] if isinstance(error, UsageError) else error.strerror or type(error).__name__
        console.write()
        console.paragraph(console.say("checkup.kept.not", path=shown(path), reason=reason), "")


def _course(cases: Sequence[Case], console: Console) -> None:
    """Show the right answers now and after training on, untreated and treated."""
    from softscope.doctor import patients

    console.write()
    console.write(console.paint(console.say("checkup.course", steps=f"{patients.MORE:,}"), "bold"))
    names = ("checkup.course.now", "checkup.course.untreated", "checkup.course.treated")
    console.write(console.paint(_row("", [console.say(name) for name in names]), "dim"))
    for trained, diagnosis in cases:
        batch = patients.held_out(trained)
        found = diagnosis.prognosis
        arms = [None, None] if found is None else [found.untreated, found.treated]
        models = [trained.model, *(None if arm is None else arm.model for arm in arms)]
        shares = ["–" if model is None else f"{patients.answers(model, batch):.0%}" for model in models]
        console.write(_row(trained.patient.title.of(console.lang), shares))
    console.paragraph(console.say("checkup.course.chance", chance=f"{1 / patients.PAIRS:.0%}"))


def _row(title: str, cells: Sequence[str]) -> str:
    return "  " + pad(title, 14) + "".join(pad(cell, 11, right=True) for cell in cells)


def _difference(cases: Sequence[Case], console: Console) -> None:
    from softscope.doctor import patients

    lang = console.lang
    colon, between = ("：", "；") if lang == "zh" else (": ", "; ")

    def listed(values: Sequence[str]) -> str:
        titles = (case.trained.patient.title.of(lang) for case in cases)
        return between.join(f"{title}{colon}{value}" for title, value in zip(titles, values, strict=True))

    first = [f"{float(case.trained.history.snapshots[0].readings['blocked'][0, 0]):.0%}" for case in cases]
    last = [next(iter(case.diagnosis.view.states.values())) for case in cases]
    advantages = [f"{state.advantage:.2f} ± {state.error:.2f}".replace("-", "−") for state in last]
    console.write()
    console.write(console.paint(console.say("checkup.difference"), "bold"))
    console.paragraph(console.say("checkup.difference.start", shares=listed(first)))
    blocked = listed([f"{state.blocked:.0%}" for state in last])
    console.paragraph(console.say("checkup.difference.end", shares=blocked, advantages=listed(advantages)))
    console.paragraph(console.say("checkup.difference.keys", pairs=patients.PAIRS, keys=patients.KEYS))
