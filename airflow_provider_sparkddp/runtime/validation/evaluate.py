"""Loads nothing and trusts nothing: takes a loaded model and the held-out rows, and says what holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from airflow_provider_sparkddp.runtime.data.dataset import matrix, read_share
from airflow_provider_sparkddp.runtime.data.shards import deal
from airflow_provider_sparkddp.runtime.models.load import LoadedModel
from airflow_provider_sparkddp.runtime.models.predict import forward
from airflow_provider_sparkddp.runtime.validation.gates import Check, gate_checks
from airflow_provider_sparkddp.runtime.validation.metrics import METRICS
from airflow_provider_sparkddp.spec.manifests import TRAIN, Manifest

# Largest difference allowed between the trained model's stored predictions and the exported model's, relative and absolute,
# by the number format of the weights: what another processor or thread count may change.
TOLERANCES = {torch.float64: (1e-9, 1e-9), torch.float32: (1e-4, 1e-5)}
COARSE = (2e-2, 1e-2)


@dataclass
class Verdict:
    """All checks, and the figures behind them.

    Attributes:
        metrics: metric -> {"value", "baseline"?, "ratio"?}.
        rows: held-out rows that were predicted.
    """

    checks: list[Check] = field(default_factory=list)
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    rows: int = 0

    @property
    def passed(self) -> bool:
        return bool(self.checks) and all(check.passed for check in self.checks)


def evaluate(
    model: LoadedModel, manifest: Manifest, manifest_uri: str, split: str, gates: Mapping[str, Any], alias: str | None
) -> Verdict:
    """Predict the rows of the split, raw as they are, and check alias, shape, finiteness, parity and gates."""
    verdict = Verdict()
    wanted = alias or model.alias
    verdict.checks.append(Check("alias", model.alias == wanted, f"{model.alias!r}, asked for {wanted!r}"))
    baselines = [str(gate["baseline"]) for gate in gates.values() if "baseline" in gate]
    columns = list(dict.fromkeys([*model.features, model.target, *baselines]))
    held_out = read_share(manifest, manifest_uri, deal(manifest.files, split, 1)[0], columns)
    predicted = model.predict(held_out.select(list(model.features)))
    verdict.rows = held_out.num_rows
    column = predicted.column(model.alias) if model.alias in predicted.column_names else None
    shape_ok = column is not None and predicted.num_rows == held_out.num_rows
    verdict.checks.append(Check("shape", shape_ok, f"{predicted.num_rows} predictions for {held_out.num_rows} rows"))
    values = np.asarray(predicted.column(0).combine_chunks().to_pylist(), dtype=np.float64)
    missing = int(np.size(values) - np.isfinite(values).sum())
    verdict.checks.append(Check("finite", missing == 0, f"{missing} NaN or infinite predictions"))
    verdict.checks.append(parity(model))
    if values.ndim == 1:
        _gates(verdict, values, held_out, model.target, gates, (manifest, manifest_uri))
    elif gates:
        verdict.checks.append(
            Check("metrics", False, f"predictions have {values.shape[1]} outputs a row; metrics need one")
        )
    return verdict


def parity(model: LoadedModel) -> Check:
    """The exported model against the predictions that the training stored before it wrote the weights."""
    if model.parity is None:
        return Check("parity", False, "the model carries no stored predictions")
    stored, now = model.parity["predictions"], forward(model.module, model.parity["inputs"])
    formats = [p.dtype for p in model.module.parameters() if p.is_floating_point()]
    rtol, atol = TOLERANCES.get(formats[0] if formats else torch.float32, COARSE)
    if stored.shape != now.shape:
        return Check("parity", False, f"shape {tuple(now.shape)}, stored {tuple(stored.shape)}")
    largest = float((now.double() - stored.double()).abs().max())
    same = torch.allclose(now.double(), stored.double(), rtol=rtol, atol=atol)
    return Check(
        "parity",
        same,
        f"largest difference {largest:.2g} over {len(now)} rows (tolerance {rtol:g} relative + {atol:g})",
    )


def _gates(
    verdict: Verdict, values: Any, held_out: Any, target_name: str, gates: Mapping[str, Any], data: tuple[Manifest, str]
) -> None:
    target = matrix(held_out, [target_name], np.float64)[:, 0]
    for metric, gate in gates.items():
        figures = {"value": METRICS[metric](target, values)}
        if "baseline" in gate:
            offset = _offset(gate.get("offset", 0.0), target_name, gate["baseline"], data)
            guess = matrix(held_out, [gate["baseline"]], np.float64)[:, 0] + offset
            figures |= {"baseline": METRICS[metric](target, guess), "offset": offset}
        verdict.metrics[metric] = figures
        verdict.checks += gate_checks(metric, figures["value"], gate, figures.get("baseline"))


def _offset(offset: Any, target: str, baseline: str, data: tuple[Manifest, str]) -> float:
    """A number, or the median or mean of (target - baseline) over the training rows: what the baseline may learn, too."""
    if not isinstance(offset, str):
        return float(offset)
    manifest, uri = data
    training = read_share(manifest, uri, deal(manifest.files, TRAIN, 1)[0], [target, baseline])
    difference = matrix(training, [target], np.float64)[:, 0] - matrix(training, [baseline], np.float64)[:, 0]
    return float(np.median(difference) if offset == "train_median" else np.mean(difference))
