"""`load_model`: a stored model back in memory, without Airflow, without a Trainer, without unpickling."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_sparkddp.runtime.models import bundle, locate, predict
from airflow_provider_sparkddp.runtime.models.construct import build_layers, construct
from airflow_provider_sparkddp.runtime.models.formats import safetensors
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.references import import_paths


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to predict.

    Attributes:
        alias: names the column of the predictions.
        module: the LightningModule, in eval mode, on the CPU.
        features: names of the inputs in the trained order.
        target: name of what it predicts.
        description: everything that model.json says.
    """

    alias: str
    module: Any
    features: tuple[str, ...]
    target: str
    description: bundle.ModelDescription
    parity: dict[str, Any] | None = None

    def predict(self, rows: Any) -> Any:
        """One prediction for each row, in their order, as one column named by the alias.

        Args:
            rows: pyarrow Table or RecordBatch, pandas DataFrame, dict of columns, or list of dicts, holding the features by name, raw:
                as the training's source held them. A text for an indexed feature, a list of numbers for an array.

        Returns:
            A pandas DataFrame with the rows' index for a DataFrame; a pyarrow Table otherwise.

        Raises:
            SparkDDPError: SDDP-504 when a feature is missing or holds what the model can't take.
        """
        table, kind = predict.as_table(rows)
        dtype = predict.number_format(self.module)
        if table.num_rows == 0:
            column = predict.no_rows(table, self.features, self.description.output_shape, dtype)
        else:
            x = predict.inputs(table, self.description.features, self.description.encoders, dtype)
            column = predict.as_column(predict.forward(self.module, x))
        result = pa.table({self.alias: column})
        if kind == "arrow":
            return result
        frame = result.to_pandas()
        frame.index = rows.index
        return frame


def load_model(path: str | Path, trusted_modules: Sequence[str] | str = ()) -> LoadedModel:
    """Load a model that ModelExportOperator (or a training) wrote.

    Args:
        path: its folder: an absolute URI, or a path on this computer.
        trusted_modules: modules whose classes may be imported for it, besides those of Lightning and this package.

    Raises:
        SparkDDPError: SDDP-501 (missing, cut or foreign files), SDDP-502 (a class outside of trusted_modules), SDDP-401 to 403
            (the class can't be imported or built), SDDP-503 (weights that don't fit).
    """
    folder = locate.model_uri(path)
    trusted_modules = [trusted_modules] if isinstance(trusted_modules, str) else list(trusted_modules)
    description = bundle.describe(folder)
    named = (description.model, *import_paths(description.model_kwargs))
    for check in (locate.require_trusted_name, locate.require_trusted):  # all names before the first import
        for path_in_model in named:
            check(path_in_model, list(trusted_modules))
    with tempfile.TemporaryDirectory(prefix="sparkddp-model-") as scratch:
        files = bundle.fetch(folder, description, Path(scratch))
        if bundle.WEIGHTS not in files:
            raise SparkDDPError("SDDP-501", f"{folder} holds a model.json without weights.", "Export again.")
        module, _ = construct(description.model, description.model_kwargs)
        build_layers(module, safetensors.names(files[bundle.WEIGHTS]))
        safetensors.load(module, files[bundle.WEIGHTS], description.tied)
        parity = _parity(files.get(bundle.PARITY))
    module.eval()
    features = tuple(column.name for column in description.features)
    return LoadedModel(description.alias, module, features, description.target.name, description, parity)


def _parity(path: Path | None) -> dict[str, Any] | None:
    """Rows and the predictions that the training stored for them."""
    # Copies: the file they are mapped from is about to go.
    return {name: tensor.clone() for name, tensor in safetensors.load_tensors(path).items()} if path else None
