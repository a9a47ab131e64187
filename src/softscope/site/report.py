"""A sample of the doctor's report: the built-in patients, trained and examined now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from softscope.doctor.diagnosis import Diagnosis


def diagnoses(progress: Callable[[float], None], steps: int | None = None) -> list[Diagnosis]:
    """Train the patients and let the doctor examine them and try its remedies."""
    from softscope.doctor import patients
    from softscope.doctor.diagnosis import diagnose

    found = []
    for i, patient in enumerate(patients.PATIENTS):
        progress(i / len(patients.PATIENTS))
        trained = patients.train(patient, steps=patients.STEPS if steps is None else steps)
        first = diagnose(trained.history, patient.title, trials=patients.trials(trained))
        found.append(patients.tried(trained, first))
    return found
