"""Training and timing: what learns, what gets stuck, and what attention costs."""

import math

import numpy as np
import pytest
import torch

import softscope
from experiments.small import result
from softscope._one_thread import one_thread
from softscope._text import Text, same
from softscope.doctor.treat import evidence
from softscope.experiments import Measured, Table, cost, recall, remedies
from softscope.experiments.layers import Additive, Weighted, recall_model
from softscope.experiments.learning import REMEDIES, SCORES, verdict
from softscope.experiments.table import Column, label
from softscope.tasks import RecallModel, recall_batch


def test_without_the_scale_a_wide_model_is_stuck_and_a_temperature_revives_it():
    scores, tried = result("learning")["scores"], result("learning")["remedies"]
    assert scores.row(score=SCORES["scaled"], d=128)["verdict"].en == "learned"
    assert scores.row(score=SCORES["additive"], d=128)["verdict"].en == "learned"
    assert scores.row(score=SCORES["dot"], d=128)["verdict"].en == "stuck"
    assert tried.row(remedy=REMEDIES["none"])["verdict"].en == "stuck"
    assert tried.row(remedy=REMEDIES["temperature"])["verdict"].en == "learned"
    assert tried.row(remedy=REMEDIES["softcap"])["verdict"].en != "learned"


@pytest.mark.parametrize("name", evidence.RECORDED)
def test_what_the_doctor_says_of_a_remedy_is_what_is_measured(name):
    table = result("remedies")["remedies"]
    said = evidence.RECORDED[name]
    for when, revives in (("start", said.start), ("stuck", said.stuck)):
        row = table.row(remedy=remedies.REMEDIES[name], when=remedies.WHEN[when])
        assert row["verdict"].en == ("learned" if revives else "stuck"), when


def test_every_remedy_was_tried_and_untreated_it_is_stuck():
    table = result("remedies")["remedies"]
    assert {*evidence.RECORDED, "none"} == set(remedies.REMEDIES)
    for when in remedies.WHEN.values():
        assert table.row(remedy=remedies.REMEDIES["none"], when=when)["verdict"].en == "stuck"
    for when, found in remedies.WHEN.items():
        for text in remedies.revived(table, when):
            assert text.en in next(note.en for note in result("remedies").notes if f"Applied {found.en}" in note.en)


def test_the_error_and_the_range_are_over_seeds():
    row = result("learning")["scores"].row(score=SCORES["dot"], d=16)
    assert row["lowest"] < row["accuracy"].value < row["highest"]
    spread = [row["lowest"], 3 * row["accuracy"].value - row["lowest"] - row["highest"], row["highest"]]  # three seeds
    assert row["accuracy"].error == pytest.approx(Measured.of(spread).error)
    assert "3 seeds" in result("learning")["scores"].title.en


def test_runs_pool_into_their_mean_and_the_earliest_stop():
    def made(accuracy, losses, stopped_at):
        one = Measured(accuracy, 0.5)
        return recall.RecallRun(one, one, accuracy, one, one, losses, stopped_at)

    found = recall.pooled([made(0.2, [3.0, 1.0], None), made(0.4, [1.0], 1)])
    assert found.accuracy == Measured.of([0.2, 0.4])
    assert (found.transmission, found.losses, found.stopped_at) == (pytest.approx(0.3), [2.0], 1)
    unread = [made(x, [1.0], None)._replace(transmission=None, advantage=None, blocked=None) for x in (0.2, 0.4)]
    assert recall.pooled(unread)[2:5] == (None, None, None)


def test_the_advantage_tells_right_from_stuck():
    scores = result("learning")["scores"]
    right, stuck = scores.row(score=SCORES["scaled"], d=128), scores.row(score=SCORES["dot"], d=128)
    assert stuck["blocked"].value > 0.8
    assert stuck["transmission"] < 1e-3
    assert stuck["advantage"].value < 0.5
    assert right["advantage"].value > 1.5


def test_fixed_temperature_is_the_scale_itself():
    scores, tried = result("learning")["scores"], result("learning")["remedies"]
    scaled = scores.row(score=SCORES["scaled"], d=128)["loss"].value
    assert tried.row(remedy=REMEDIES["temperature"])["loss"].value == pytest.approx(scaled, rel=0.05)


@pytest.mark.parametrize(("accuracy", "wanted"), [(0.95, "learned"), (0.9, "learned"), (0.6, "partly"), (0.3, "stuck")])
def test_verdicts(accuracy, wanted):
    assert verdict(accuracy).en == wanted


def test_seeds_that_disagree_are_no_verdict():
    assert verdict(1.0, 0.3).en == verdict(0.3, 0.6).en == "partly"
    assert verdict(0.3, 0.2).en == "stuck"


def test_the_layer_taken_apart_gives_what_the_layer_gives():
    batch = recall_batch(3, pairs=4, generator=torch.Generator().manual_seed(0))
    model = RecallModel(8, vocabulary=4)
    inputs = (model.key_table(batch.query), model.key_table(batch.keys), model.value_table(batch.values))
    mixed, *_ = recall._Plain(model.attention).attend(*inputs)
    joined = model.attention.w_o(mixed.transpose(-3, -2).flatten(-2))
    torch.testing.assert_close(joined, model.attention(*inputs))


def test_additive_attention_is_the_librarys():
    layer = Additive(8, seed=0)
    query, key, value = torch.randn(3, 2, 5, 8, generator=torch.Generator().manual_seed(1))
    wanted = softscope.additive_attention(
        query[:, None], key[:, None], layer.w_v(value)[:, None], layer.w_q.weight.T, layer.w_k.weight.T, layer.v_a
    )
    torch.testing.assert_close(layer(query, key, value), layer.w_o(wanted[:, 0]))
    mixed, q, k, v, options = layer.attend(query, key, value)
    torch.testing.assert_close(softscope.attention(q, k, v, **options), mixed)


def test_weights_from_softmax_are_scaled_dot_product_attention():
    layer = Weighted(8, 0, softscope.softmax)
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))
    wanted = torch.nn.functional.scaled_dot_product_attention(layer.w_q(x), layer.w_k(x), layer.w_v(x))
    torch.testing.assert_close(layer(x, x, x), layer.w_o(wanted))


def test_readings_of_other_weights_are_left_out():
    outcome = recall.learn(recall_model(8, Weighted(8, 0, torch.sigmoid), vocabulary=16, seed=0), d=8, steps=1, seed=0)
    assert (outcome.transmission, outcome.advantage, outcome.blocked) == (None, None, None)
    assert 0 <= outcome.accuracy.value <= 1


def test_threads_are_given_back():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_materialised_attention_costs_n_squared_and_what_is_measured_is_right():
    costs, fits = result("cost")["cost"], result("cost")["exponents"]
    assert max(costs.column("error")) < 1e-5
    materialised = cost.METHODS["materialised"]
    largest = max((r for r in costs.records() if r["method"] == materialised), key=lambda r: r["n"])
    assert 0.9 * largest["weights"] < largest["memory"] < 4 * largest["weights"]
    assert fits.row(method=materialised)["time"].value > 1.3


def test_the_exponent_of_an_exact_law():
    rows = [(Text(en="m", zh="某"), n, 3.0 * n**1.5) for n in (100, 200, 400, 800)]
    table = Table(
        "t",
        Text(en="t", zh="表"),
        (label("method", same("m")), label("n", same("n")), Column("ms", Text(en="t", zh="时"))),
        rows,
    )
    slope, error = cost.fit(table, Text(en="m", zh="某"), "ms")
    assert slope == pytest.approx(1.5)
    assert error < 1e-9
    noisy = [(m, n, t * (1.2 if n == 400 else 1.0)) for m, n, t in rows]
    assert cost.fit(Table("t", Text(en="t", zh="表"), table.columns, noisy), Text(en="m", zh="某"), "ms").error > 0.05


def test_errors_of_a_mean():
    x = np.random.default_rng(0).standard_normal(10_000)
    assert Measured.of(x).error == pytest.approx(0.01, rel=0.05)
    assert math.isnan(Measured.of([1.0]).error)
    assert math.isnan(Measured.of([]).value)
    assert Measured.of([1.0, math.nan, 3.0]).value == 2.0
