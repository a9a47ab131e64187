"""The readings of one head from explicit float64 weights; imports nothing from the package."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def row(logits: Array, scores: Array, shown: Array, dP: Array, slope: Array, sink: float | None) -> dict[str, float]:
    """Every reading of one query row over its visible keys."""
    x, s, g, c = logits[shown], scores[shown], dP[shown], slope[shown]
    n = len(x)
    e = np.exp(x - x.max())
    p = e / e.sum()
    entropy = -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0))
    found = {
        "sharpness": 1.0 - entropy / np.log(n) if n > 1 else 0.0,
        "jacobian_trace": np.sum(p * (1.0 - p)),
        "peak": p.max(),
        "max_logit": s.max(),
        "logit_spread": x.std(),
        "lse_min": x.max() + np.log(e.sum()),
        "count": n,
    }
    if sink is not None:
        x, g, c = np.append(x, sink), np.append(g, 0.0), np.append(c, 1.0)
        e = np.exp(x - x.max())
        p, n = e / e.sum(), n + 1
    demand, supply = np.linalg.norm(g - g.mean()), np.linalg.norm(c * p * (g - p @ g))
    found |= {"demand": demand, "supply": supply, "transmission": n * supply / demand}
    found["advantage"] = (g.mean() - p @ g) / g.std()
    found["regret_ratio"] = (p @ g - g.min()) / (g.mean() - g.min())
    found["blocked"] = float(found["transmission"] < 0.0025 * np.sqrt(n))
    weights = np.zeros(len(shown) + (sink is not None))
    weights[np.append(shown, True) if sink is not None else shown] = p
    return found | {"weights": weights}


def head(
    q: Array, k: Array, v: Array, g: Array, *, scale: float, shown: Array, bias: Array | float = 0.0,
    softcap: float | None = None, sink: float | None = None, queries: Array, one_sequence: bool = True,
) -> dict[str, float]:  # fmt: skip
    """One head over all sequences.

    Args:
        q, g: (B, n, ·).
        k, v: (B, m, ·).
        shown: (B, n, m).
        queries: (B, n), true for real tokens.
        one_sequence: query i and key i are the same position, so offsets mean something.
    """
    rows, sequences, positions = [], [], []
    scores = scale * q @ k.transpose(0, 2, 1)
    x = (scores if softcap is None else softcap * np.tanh(scores / softcap)) + bias
    slope = np.ones_like(x) if softcap is None else 1.0 / np.cosh(scores / softcap) ** 2
    dP = g @ v.transpose(0, 2, 1)
    everyone = []
    for b in range(q.shape[0]):
        counts = shown[b].sum(-1)
        richest = counts[queries[b]].max()
        for i in np.flatnonzero(queries[b] & (counts > 0)):
            # a row needs 32 keys, or half as many as the row of its sequence that sees the most
            everyone.append((scores[b, i][shown[b, i]].max(), np.log(np.exp(x[b, i][shown[b, i]]).sum())))
            if counts[i] < 2 or counts[i] < min(32, richest / 2):
                continue
            found = row(x[b, i], scores[b, i], shown[b, i], dP[b, i], slope[b, i], sink)
            cosines = np.abs(k[b] @ q[b, i]) / np.linalg.norm(q[b, i]) / np.linalg.norm(k[b], axis=-1)
            found |= {"q_norm": np.linalg.norm(q[b, i]), "cosine": cosines[shown[b, i]].mean()}
            rows.append(found)
            sequences.append(b)
            positions.append(i)
    means = _together(rows, np.array(sequences), np.array(everyone))
    blocked = [(found["weights"], i) for found, i in zip(rows, positions, strict=True) if found["blocked"]]
    if blocked and one_sequence:
        means["blocked_offset_mass"] = _most_at_one_offset(blocked, k.shape[1])
    return means


def _most_at_one_offset(rows: list[tuple[Array, int]], m: int) -> float:
    held = np.zeros(2 * m)
    for weights, i in rows:
        held[np.arange(m) - i + m] += weights[:m]
    return held.max() / sum(weights.sum() for weights, _ in rows)


def _together(rows: list[dict[str, float]], sequences: Array, everyone: Array) -> dict[str, float]:
    columns = {name: np.array([found[name] for found in rows]) for name in rows[0] if name != "weights"}
    weights = np.array([found["weights"] for found in rows])
    means = {name: values.mean() for name, values in columns.items()}
    for name in ("sharpness", "transmission", "regret_ratio"):
        for level, q in (("median", 0.5), ("p05", 0.05), ("p95", 0.95)):
            means[f"{name}:{level}"] = np.quantile(columns[name], q)
    means["max_logit"], means["lse_min"] = everyone[:, 0].max(), everyone[:, 1].min()
    total = weights.sum(0)
    means["sink_column"], means["sink_mass"] = total.argmax(), total.max() / total.sum()
    blocked = columns["blocked"] > 0
    of = blocked if blocked.any() else np.ones(len(rows), bool)
    advantage, owners = columns["advantage"][of], sequences[of]
    means["advantage"] = advantage.mean()
    sums = [np.sum(advantage[owners == b] - advantage.mean()) for b in np.unique(owners)]
    means["advantage_error"] = np.sqrt(len(sums) / (len(sums) - 1) * np.sum(np.square(sums))) / len(advantage)
    if blocked.any():
        pooled = weights[blocked].sum(0)
        means["blocked_mass"] = pooled.max() / pooled.sum()
        parts = [weights[blocked & (sequences == b)] for b in np.unique(sequences)]
        parts = [part for part in parts if len(part) >= 8]
        if parts:
            own = sum(part.sum(0).max() for part in parts) / sum(part.sum() for part in parts)
            means["blocked_mass"] = max(means["blocked_mass"], own)
    return means
