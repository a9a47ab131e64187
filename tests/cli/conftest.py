import pytest

from cli.commands import Runner


@pytest.fixture
def run(capsys, monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("COLUMNS", "80")
    return Runner(capsys, monkeypatch)
