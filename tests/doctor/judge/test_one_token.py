"""A head that parks on one kind of token, wherever it stands, is resting, once a trial shows that nothing needs it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import softscope as ss
from doctor.judge.histories import IDLE, STARVES, STUCK, USEFUL, history, per_head
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.judge.history_view import Head, HistoryView
from softscope.doctor.read.head_trial import HeadTrial
from softscope.doctor.read.one_token import by_token, over_passes

STOP, WORDS, LENGTH = 0, 40, 32


@pytest.mark.parametrize(
    ("share", "trial", "wanted"),
    [
        (0.95, IDLE, "resting"),
        (0.6, IDLE, "idle"),
        (float("nan"), IDLE, "idle"),
        (0.95, None, "suspected"),
        (0.95, USEFUL, "useful"),
        (0.95, STARVES, "starving"),
    ],
)
def test_only_a_trial_tells_a_rest_from_being_stuck(share: float, trial: HeadTrial | None, wanted: str) -> None:
    found = history(**per_head(1, STUCK | {"blocked_token_mass": share}))
    view = HistoryView(found, {} if trial is None else {(found.sites[0].name, 1): trial})
    assert view.states[Head(0, 1)].state == wanted


def test_the_report_says_what_it_rests_on() -> None:
    found = history(**per_head(1, STUCK | {"blocked_token_mass": 0.95}))
    diagnosis = diagnose(found, trials={(found.sites[0].name, 1): IDLE})
    (told,) = [one for one in diagnosis.outcomes if one.code == "SS002" and one.kind == "informative"]
    assert "95% of their weight on one kind of token" in told.says.en
    assert "同一种 token" in told.says.zh
    assert diagnosis.prescriptions == ()


def by_hand(columns: np.ndarray, tokens: np.ndarray, real: np.ndarray) -> list[float]:
    found = []
    for head in range(columns.shape[1]):
        rare = [token for token in range(WORDS) if (tokens[real] == token).mean() <= 0.25]
        shares = [columns[:, head][tokens == token].sum() / columns[:, head].sum() for token in rare]
        found.append(max(shares))
    return found


def test_the_share_is_that_of_a_plain_count() -> None:
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, WORDS, (3, LENGTH))
    tokens[:, ::3] = 5  # a third of all: no place to rest
    real = rng.random((3, LENGTH)) < 0.8
    columns = rng.random((3, 2, LENGTH)) ** 8 * real[:, None]
    found = by_token(*map(torch.from_numpy, (columns, tokens, real)))
    assert (found.held.amax(dim=1) / found.total).tolist() == pytest.approx(by_hand(columns, tokens, real))


def test_several_passes_count_together() -> None:
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, WORDS, (4, LENGTH))
    columns = rng.random((4, 2, LENGTH))
    whole, *halves = (
        by_token(torch.from_numpy(columns[part]), torch.from_numpy(tokens[part]), None)
        for part in (slice(0, 4), slice(0, 2), slice(2, 4))
    )
    both = over_passes(halves)
    assert both.ids.tolist() == whole.ids.tolist()
    torch.testing.assert_close(both.held, whole.held)
    torch.testing.assert_close(both.total, whole.total)


class Reader(nn.Module):
    """One layer whose first head looks at full stops and reads nothing there, since their value is zero."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(WORDS, 16)
        self.maps, self.out = nn.Linear(16, 48, bias=False), nn.Linear(16, WORDS)
        with torch.no_grad():
            self.embedding.weight[:, 0] = 1.0
            self.embedding.weight[:, 1] = 0.0
            self.embedding.weight[STOP] = 0.0
            self.embedding.weight[STOP, :2] = 1.0
            self.maps.weight[0] = self.maps.weight[16] = 0.0
            self.maps.weight[0, 0] = 60.0  # q of head 0 …
            self.maps.weight[16, 1] = 1.0  # … and the k of a full stop
            self.maps.weight[32:48, :2] = 0.0
            self.out.weight[:, :8] *= 1e-4  # what it reads hardly matters

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = (x.unflatten(-1, (2, 8)).transpose(1, 2) for x in self.maps(self.embedding(tokens)).chunk(3, dim=-1))
        y = functional.scaled_dot_product_attention(q, k, v)
        found: Tensor = self.out(y.transpose(1, 2).flatten(-2))
        return found


def sentences(rows: int, seed: int) -> Tensor:
    made = torch.randint(1, WORDS, (rows, LENGTH), generator=torch.Generator().manual_seed(seed))
    for row in made:
        row[int(torch.randint(4, LENGTH, (1,), generator=torch.Generator().manual_seed(int(row.sum()))))] = STOP
    return made


def test_a_model_with_a_head_on_full_stops() -> None:
    model = Reader()

    def loss(output: Tensor, tokens: Tensor) -> Tensor:
        return functional.cross_entropy(output.flatten(0, 1), tokens.flatten())

    with ss.probe(model, every=1, max_rows=None) as scope:
        for step in range(4):
            tokens = sentences(8, step)
            loss(model(tokens), tokens).backward()  # type: ignore[no-untyped-call]
            scope.step()
    share = scope.history().snapshots[-1].readings["blocked_token_mass"][0]
    assert share[0] > 0.9
    scope.trial(sentences(64, 9), loss=loss)
    view = diagnose(scope.history(), trials=scope.trials).view
    assert view.states[Head(0, 0)].state == "resting", view.states
