"""Which Trainer arguments are taken, converted or refused, each with its reason and remedy; the three seams stand in seams.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec import objects, seams
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert
from airflow_provider_sparkddp.spec.errors import SparkDDPError, nearest

# Lightning 2.6's Trainer arguments and the type that a text from a template is converted to.
TRAINER_ARGUMENTS: dict[str, str] = {
    "accelerator": "any",
    "strategy": "any",
    "devices": "any",
    "num_nodes": "int",
    "precision": "any",
    "logger": "switch",
    "callbacks": "any",
    "fast_dev_run": "switch",
    "max_epochs": "int",
    "min_epochs": "int",
    "max_steps": "int",
    "min_steps": "int",
    "max_time": "any",
    "limit_train_batches": "number",
    "limit_val_batches": "number",
    "limit_test_batches": "number",
    "limit_predict_batches": "number",
    "overfit_batches": "number",
    "val_check_interval": "number",
    "check_val_every_n_epoch": "int",
    "num_sanity_val_steps": "int",
    "log_every_n_steps": "int",
    "enable_checkpointing": "bool",
    "enable_progress_bar": "bool",
    "enable_model_summary": "bool",
    "accumulate_grad_batches": "int",
    "gradient_clip_val": "number",
    "gradient_clip_algorithm": "str",
    "deterministic": "any",
    "benchmark": "bool",
    "inference_mode": "bool",
    "use_distributed_sampler": "bool",
    "profiler": "switch",
    "detect_anomaly": "bool",
    "barebones": "bool",
    "plugins": "any",
    "sync_batchnorm": "bool",
    "reload_dataloaders_every_n_epochs": "int",
    "default_root_dir": "str",
    "enable_autolog_hparams": "bool",
    "model_registry": "str",
}

# Arguments that follow from the operator's own: argument -> what to set instead.
DECIDED_BY_OPERATOR: dict[str, str] = {
    "devices": "Set the operator's num_nodes and devices.",
    "num_nodes": "Set the operator's num_nodes and devices.",
    "default_root_dir": "Set the operator's run_dir.",
    "use_distributed_sampler": "Leave it out: every rank already reads its own rows and no other's.",
    "overfit_batches": "Use limit_train_batches, or partition a smaller source.",
    "reload_dataloaders_every_n_epochs": "Leave it out: the loader shuffles anew in each epoch.",
    "barebones": "Leave it out: the losses of each epoch are part of the result.",
    "model_registry": "Leave it out: the exported model lies where ModelExportOperator puts it.",
}

# Arguments that Lightning's Trainer had in earlier days -> what to set instead.
FORMER_ARGUMENTS: dict[str, str] = {
    "amp_backend": "Use precision='16-mixed' or 'bf16-mixed' (torch's own; apex and the choice between the two are gone).",
    "amp_level": "Use precision='16-true' or '16-mixed'; apex's levels are gone.",
    "gpus": "Set accelerator='cuda' and the operator's devices.",
    "auto_select_gpus": "Leave it out: Spark assigns the GPUs.",
    "tpu_cores": "Leave it out: Spark assigns no TPUs to tasks.",
    "num_processes": "Set accelerator='cpu' and the operator's devices.",
    "distributed_backend": "Use strategy, and accelerator for the hardware.",
    "auto_lr_find": "Set the operator's tune={'lr': True}.",
    "auto_scale_batch_size": "Set the operator's tune={'batch_size': 'power'}.",
    "replace_sampler_ddp": "Leave it out: every rank already reads its own rows and no other's.",
    "resume_from_checkpoint": "Leave it out: set the operator's init_from to start from earlier weights.",
    "checkpoint_callback": "Set the operator's best_weights to keep the best epoch's weights.",
    "terminate_on_nan": "Set the operator's on_nan.",
    "progress_bar_refresh_rate": "Leave it out: the task's log tells the progress.",
    "weights_summary": "Use enable_model_summary.",
    "track_grad_norm": "Log it in the module's on_before_optimizer_step.",
}

# (operator kind, argument) -> what it will do; refused with SDDP-102 until it does.
NOT_BUILT: dict[tuple[str, str], str] = {
    ("partition", "storage_conn_id"): "takes storage credentials from an Airflow connection",
    ("train", "storage_conn_id"): "takes storage credentials from an Airflow connection",
    ("export", "storage_conn_id"): "takes storage credentials from an Airflow connection",
    ("validate", "storage_conn_id"): "takes storage credentials from an Airflow connection",
    ("train", "models"): "trains several models in one task",
    ("train", "datamodule"): "trains on a data module of your own",
    ("train", "datamodule_kwargs"): "trains on a data module of your own",
    ("train", "loader"): "sets how Parquet is read ahead and shuffled",
    ("train", "checkpoint"): "keeps checkpoints between tries",
}
NOT_BUILT_TRAINER: dict[str, str] = {"enable_checkpointing": "keeps checkpoints between tries"}

# Combinations with sync_batchnorm=True that are refused.
SYNC_BATCHNORM: tuple[seams.Rule, ...] = (
    seams.Rule(
        "torch synchronises BatchNorm on GPUs alone",
        "Set accelerator='cuda' and a strategy of several ranks, or use a normalisation that needs no batch, such as LayerNorm.",
        accelerators=("cpu", "mps"),
    ),
    seams.Rule(
        "Lightning ignores it there, without a word",
        "Call torch.nn.SyncBatchNorm.convert_sync_batchnorm in the module's configure_model, or use ddp.",
        strategies=("model_parallel",),
    ),
    seams.Rule("one rank has nobody to agree with", "Leave it out.", strategies=("single_device",)),
)


def check_not_built(kind: str, arguments: Mapping[str, Any]) -> None:
    """Raises SparkDDPError SDDP-102 for an argument that is set and does nothing yet: never ignored."""
    for name, value in arguments.items():
        if (kind, name) in NOT_BUILT and value not in (None, {}, []):
            raise SparkDDPError(
                "SDDP-102",
                f"{name}={value!r} is set; it {NOT_BUILT[kind, name]}, and this version can't do that yet.",
                f"Leave {name} out.",
            )


def check_trainer(trainer: Mapping[str, Any]) -> dict[str, Any]:
    """The trainer arguments, converted to their declared types.

    Raises:
        SparkDDPError: SDDP-101 to SDDP-104.
    """
    converted: dict[str, Any] = {}
    for name, value in trainer.items():
        if name in FORMER_ARGUMENTS:
            raise SparkDDPError(
                "SDDP-103", f"trainer[{name!r}] is of Lightning's earlier days.", FORMER_ARGUMENTS[name]
            )
        if name not in TRAINER_ARGUMENTS:
            raise SparkDDPError(
                "SDDP-103",
                f"trainer[{name!r}] is not an argument of Lightning's Trainer.",
                f"{nearest(name, TRAINER_ARGUMENTS)}The valid names are those of lightning.pytorch.Trainer.",
            )
        if name in DECIDED_BY_OPERATOR:
            raise SparkDDPError(
                "SDDP-103", f"trainer[{name!r}] contradicts what the operator decides.", DECIDED_BY_OPERATOR[name]
            )
        converted[name] = None if value is None else convert(f"trainer[{name!r}]", value, TRAINER_ARGUMENTS[name])
        if name in NOT_BUILT_TRAINER and converted[name] not in (None, False, UNKNOWN):
            raise SparkDDPError(
                "SDDP-102",
                f"trainer[{name!r}] {NOT_BUILT_TRAINER[name]}, and this version can't do that yet.",
                f"Leave {name} out.",
            )
    seams.check(converted)
    objects.check(converted)
    if converted.get("sync_batchnorm"):
        seams.check(converted, SYNC_BATCHNORM, "sync_batchnorm=True")
    return converted
