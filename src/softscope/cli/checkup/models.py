"""Models that are not in training: loaded from a folder or the user's code, and read in a few passes."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from typing import TYPE_CHECKING

from softscope._installed import missing
from softscope._progress_bar import ProgressBar
from softscope.cli.checkup import sizes
from softscope.cli.problems import REASON, UsageError, shown
from softscope.cli.words import WORDS

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from softscope._text import Text
    from softscope.cli.console import Console
    from softscope.doctor.diagnosis import Diagnosis
    from softscope.doctor.examine import Given
    from softscope.doctor.read.head_trial import Trials
    from softscope.doctor.read.snapshot import History

    Treat = Callable[[Diagnosis], Diagnosis]  # tries the remedies of a diagnosis
    Read = tuple[History, Trials, Treat]

LARGE = 300_000_000  # parameters; beyond, remedies are compared at once: training takes three times the memory
_READ = {"--text": "text", "--text-file": "text_file", "--batch": "batch"}


def only_for_folders(options: Namespace, path: str) -> None:
    """Reject options that choose a model's input when no model comes from a folder."""
    for option, name in _READ.items():
        if getattr(options, name) is not None:
            raise UsageError("checkup.text.needless", option=option, path=shown(path) or "softscope checkup")


def of_folder(folder: pathlib.Path, options: Namespace, console: Console) -> Read:
    """Return the readings of a Hugging Face model."""
    from softscope.cli.checkup import folder as source

    _torch()
    if sum(getattr(options, name) is not None for name in _READ.values()) > 1:
        raise UsageError("checkup.text.several")
    text = options.text if options.text_file is None else _file(options.text_file)
    with sizes.within_memory():
        return _read(source.given(folder, text, options.batch), str(folder), console)


def of_function(word: str, console: Console) -> Read:
    """Return the readings of a model that the user's code builds."""
    from softscope.cli.checkup import function as source

    _torch()
    return _read(source.given(word), word, console)


def titled(read: Read, word: str) -> tuple[History, Text, Trials, Treat]:
    """Add a title that says what was read, in both languages, because the report holds both."""
    history, trials, treat = read
    counts = {
        "path": shown(word),
        "heads": sum(site.heads for site in history.sites),
        "sites": len(history.sites),
        "readings": len(history.snapshots),
    }
    return history, WORDS["checkup.model.title"].format(**counts), trials, treat


def _read(given: Given, path: str, console: Console) -> Read:
    from softscope.doctor.examine import BrokenLossError, ModelFailedError, WrongLossError, examine

    progress = ProgressBar(console.say("checkup.progress.model"))
    try:
        history = examine(given, progress)
    except ModelFailedError as error:
        raise UsageError("checkup.model.failed", reason=shown(error, REASON)) from None
    except BrokenLossError as error:
        raise UsageError("checkup.model.loss", value=shown(error)) from None
    except WrongLossError as error:
        raise UsageError("checkup.model.loss.kind", came=shown(error)) from None
    finally:
        progress.wipe()
    if not history.sites:
        unseen = next(
            (f"{name}: {why.text.of(console.lang)}" for name, why in history.unseen), console.say("checkup.model.none")
        )
        raise UsageError("checkup.model.blind", path=shown(path), reason=shown(unseen, REASON))
    return history, _tried(given, history, console), functools.partial(_treated, given, console)


def _treated(given: Given, console: Console, diagnosis: Diagnosis) -> Diagnosis:
    """Try the candidate remedies; if the model fails meanwhile, they stay candidates."""
    from softscope._users_code import Raised, whatever_it_raises
    from softscope.doctor.trial.remedy_trial import STEPS, try_plans

    if not diagnosis.view.has_loss or not any(one.candidates for one in diagnosis.prescriptions):
        return diagnosis
    steps = STEPS if sum(p.numel() for p in given.model.parameters()) <= LARGE else 0
    progress = ProgressBar(console.say("checkup.progress.remedies"))
    try:
        with whatever_it_raises():
            tried = try_plans(
                given.model, diagnosis.prescriptions, list(given.batches), loss=given.loss,
                optimizer=given.optimizer, steps=steps, progress=progress,
            )  # fmt: skip
    except Raised:
        return diagnosis
    finally:
        progress.wipe()
    return dataclasses.replace(diagnosis, prescriptions=tuple(tried))


def _tried(given: Given, history: History, console: Console) -> Trials:
    """Try the heads that the readings suspect; if the model fails meanwhile, they stay suspected."""
    from softscope._users_code import Raised, whatever_it_raises
    from softscope.doctor.diagnosis import diagnose
    from softscope.doctor.read.head_trial import Trials
    from softscope.doctor.trial.head_trial import suspects, try_heads

    heads = suspects(diagnose(history))
    if not heads or not any(snapshot.has_loss for snapshot in history.snapshots):
        return Trials()
    progress = ProgressBar(console.say("checkup.progress.trial"))
    try:
        with whatever_it_raises():  # it ran in training mode; in eval mode it may not
            return try_heads(given.model, list(given.batches), heads, loss=given.loss, progress=progress)
    except Raised:
        return Trials()
    finally:
        progress.wipe()


def _file(path: pathlib.Path) -> str:
    try:
        with path.open("rb") as stream:  # not only files: `<(command)` is a pipe, and /dev/zero has no end
            text = stream.read(sizes.TEXT + 1)
        if len(text) > sizes.TEXT:
            raise UsageError("checkup.text.large", path=shown(path), most=sizes.told(sizes.TEXT))
        return text.decode("utf-8")
    except (OSError, ValueError) as error:
        raise UsageError("checkup.text.file", path=shown(path), reason=shown(error, REASON)) from None


def _torch() -> None:
    if missing(("torch",)):
        raise UsageError("checkup.model.torch")
