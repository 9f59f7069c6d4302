"""Trains a LightningModule by DDP, one Spark task a rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from airflow_provider_sparkddp.operators.base import OnSpark
from airflow_provider_sparkddp.spec import jobs, seams
from airflow_provider_sparkddp.spec.checks.train import require_validation, require_whole_tasks
from airflow_provider_sparkddp.spec.jobs import CodeRef
from airflow_provider_sparkddp.spec.manifests import VALIDATION, require_trainable
from airflow_provider_sparkddp.spec.references import manifest_uri, named_modules
from airflow_provider_sparkddp.storage.manifests import read_manifest


class SparkDDPTrainOperator(OnSpark):
    """Train a model on the partitions of a manifest.

    The XCom is `{"model": uri, "alias", "metrics", "epochs", "losses", "world_size", "rows_per_second", …}`.

    Args:
        partitions: `partition.output`, or the path of any earlier manifest. (templated)
        num_nodes, devices: default the manifest's; `num_nodes * devices` ranks. (templated)
        model: `"pkg.mod:Class"` of a LightningModule (of `lightning.pytorch` or `pytorch_lightning`), or of a function that returns
            one. (templated)
        model_kwargs: its arguments, plain JSON; objects as `{"$import": "pkg.mod:Class", "kwargs": {…}}`, and without kwargs
            the class or function itself. (templated)
        alias: names the model and its prediction column; default the class name. (templated)
        features: columns of x, shape (rows, features), in this order. (templated)
        target: column of y, shape (rows,). (templated)
        batch_size: rows a rank and step; the global batch is `batch_size * world_size`. (templated)
        trainer: arguments of Lightning's Trainer under their own names; callbacks, logger, profiler and plugins as
            `{"$import": …, "kwargs": {…}}` or a list of such. (templated)
        early_stopping: the metric to watch, such as "val_mae", or the arguments of Lightning's EarlyStopping: `{"monitor": …, "mode":
            "min", "patience": 3, "min_delta": 0, "stopping_threshold": …}`. (templated)
        best_weights: the metric whose best validation gives the model's weights, such as "val_mae" (lower is better), or
            `{"monitor": …, "mode": "max"}`; default the weights of the training's end. (templated)
        on_nan: "stop": a loss that is NaN or infinite fails the task; "skip": all ranks leave out a step whose loss or gradient is,
            and a whole epoch of them fails the task. (templated)
        init_from: weights to start from: `export.output`, `train.output`, the path of a stored model or of a `.ckpt` file, or
            `{"path": one of these, "strict": False}` to take what fits. (templated)
        tune: `{"lr": True, "batch_size": "power"}`, either of the two: found on rank 0 before training, as Lightning's Tuner
            does, and used. Each may also be a dict of the Tuner's own arguments. (templated)
        threads_per_rank: CPU threads of a rank; default its share of its executor's cores. (templated)
        ranks_per_task: ranks of one Spark task; it divides `num_nodes * devices`. 1: a rank is a task, with one device. `devices`: one
            task a node, whose ranks are processes, each with one of the task's devices. (templated)
        port_range: "34000-34100": the ports that a firewall between driver and executors leaves open, for Spark's and the ranks'
            own; see docs/how-to/firewalls.md for those of Gloo and NCCL. (templated)
        py_files: files, zips, pure Python wheels, packages and folders of code; export and validation get it without being told
            again. (templated)
        run_dir, cpus_per_rank, executors_timeout: as for PartitionToParquetOperator. (templated)
        models, datamodule, datamodule_kwargs, loader, checkpoint, max_restarts, storage_conn_id: refused until they are built.

    Raises:
        SparkDDPError: while the DAG is parsed, with a code of docs/reference/errors.md.
    """

    kind = jobs.TRAIN
    template_fields: Sequence[str] = (*OnSpark.template_fields, *jobs.ARGUMENTS[jobs.TRAIN])
    ui_color = "#cfe2f3"

    def __init__(
        self,
        *,
        partitions: Any,
        model: str | None = None,
        features: Sequence[str] | None = None,
        target: str | None = None,
        num_nodes: int | str | None = None,
        devices: int | str | None = None,
        model_kwargs: Mapping[str, Any] | None = None,
        alias: str | None = None,
        batch_size: int | str = 1024,
        trainer: Mapping[str, Any] | None = None,
        early_stopping: str | Mapping[str, Any] | None = None,
        best_weights: str | Mapping[str, Any] | None = None,
        init_from: Any = None,
        on_nan: str = "stop",
        max_restarts: int | str = 0,
        models: Any = None,
        datamodule: Any = None,
        datamodule_kwargs: Any = None,
        loader: Any = None,
        checkpoint: Any = None,
        tune: Mapping[str, Any] | None = None,
        threads_per_rank: int | str | None = None,
        port_range: str | None = None,
        ranks_per_task: int | str = 1,
        run_dir: str | None = None,
        storage_conn_id: str | None = None,
        cpus_per_rank: int | str | None = None,
        executors_timeout: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions
        self.model, self.features, self.target = model, features, target
        self.num_nodes, self.devices = num_nodes, devices
        self.model_kwargs, self.alias = model_kwargs, alias
        self.batch_size, self.trainer = batch_size, trainer
        self.early_stopping, self.best_weights = early_stopping, best_weights
        self.on_nan, self.max_restarts, self.init_from = on_nan, max_restarts, init_from
        self.models, self.datamodule, self.datamodule_kwargs = models, datamodule, datamodule_kwargs
        self.loader, self.checkpoint, self.tune = loader, checkpoint, tune
        self.threads_per_rank, self.ranks_per_task, self.port_range = threads_per_rank, ranks_per_task, port_range
        self.run_dir, self.storage_conn_id = run_dir, storage_conn_id
        self.cpus_per_rank, self.executors_timeout = cpus_per_rank, executors_timeout
        self.check_known()

    def settings(self, checked: dict[str, Any]) -> tuple[dict[str, Any], tuple[CodeRef, ...]]:
        uri = manifest_uri(checked.pop("partitions"), "partitions")
        roles = dict.fromkeys(checked["features"], "features") | {checked["target"]: "target"}
        # What the manifest can tell is told before Spark is asked.
        manifest = read_manifest(uri)
        require_trainable(manifest, roles)
        require_validation(checked, manifest.rows(VALIDATION))
        alias = checked["alias"] or checked["model"].rpartition(":")[2].rpartition(".")[2]
        num_nodes, devices = checked["num_nodes"] or manifest.num_nodes, checked["devices"] or manifest.devices
        seams.require_ranks(checked["trainer"] or {}, num_nodes * devices)
        require_whole_tasks(num_nodes * devices, checked["ranks_per_task"])
        filled = {"num_nodes": num_nodes, "devices": devices, "model_kwargs": checked["model_kwargs"] or {}}
        return {**checked, **filled, "manifest": uri, "alias": alias}, ()

    def passed_on(
        self, settings: Mapping[str, Any], code: Sequence[CodeRef], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        # Trust comes from what this DAG's author wrote and this training built from it, never from a stored model.
        named = named_modules(settings["model"], settings["model_kwargs"])
        return {
            "trusted_modules": list(dict.fromkeys([*named, values["class_module"]])),
            "code": [asdict(ref) for ref in code],
        }
