import pytest

from cli.commands import Runner


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    for name in ("LC_ALL", "LC_MESSAGES", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("SOFTSCOPE_HOME", str(tmp_path / "softscope"))  # not the learner's own
    return Runner(capsys, monkeypatch)
