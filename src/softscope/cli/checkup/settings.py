"""The user's settings: from the command line, or else [tool.softscope] in the nearest pyproject.toml."""

from __future__ import annotations

import pathlib
import tomllib
from typing import TYPE_CHECKING, Any, NamedTuple

from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from softscope.doctor.judge.checks import Severity

KNOWN = ("fail-on", "mute")
TABLE = "[tool.softscope]"


class Settings(NamedTuple):
    """The severity from which a checkup fails, and what is muted."""

    fail_on: Severity
    mute: tuple[str, ...]


def found(fail_on: str | None, mute: str | None) -> Settings:
    """Take the command-line options, then the file's, then the defaults."""
    table = _table(pathlib.Path.cwd())
    for name in table:
        if name not in KNOWN:
            raise UsageError("checkup.settings.unknown", name=shown(name), known=", ".join(KNOWN))
    severity = (
        _severity(fail_on, "--fail-on") if fail_on else _severity(table.get("fail-on", "finding"), f"{TABLE} fail-on")
    )
    if mute is not None:
        return Settings(severity, _rules([rule.strip() for rule in mute.split(",") if rule.strip()], "--mute"))
    listed = table.get("mute", [])
    if not isinstance(listed, list) or not all(isinstance(rule, str) for rule in listed):
        raise UsageError("checkup.settings.type", value=shown(listed))
    return Settings(severity, _rules(listed, TABLE))


def _table(folder: pathlib.Path) -> dict[str, Any]:
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        if path.is_file():
            try:
                table = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get("softscope", {})
            except (OSError, ValueError) as error:
                raise UsageError("checkup.settings.broken", reason=shown(error)) from None
            return table if isinstance(table, dict) else {}
    return {}


def _severity(value: Any, where: str) -> Severity:
    from softscope.doctor.judge.checks import SEVERITIES

    for severity in SEVERITIES:
        if value == severity:
            return severity
    raise UsageError("checkup.severity.unknown", where=where, value=shown(value))


def _rules(rules: list[str], where: str) -> tuple[str, ...]:
    from softscope.doctor.judge.checks import CHECKS

    for rule in rules:
        if rule.partition(":")[0] not in CHECKS:
            raise UsageError("checkup.mute.unknown", value=shown(rule), where=where, known=", ".join(CHECKS))
    return tuple(rules)
