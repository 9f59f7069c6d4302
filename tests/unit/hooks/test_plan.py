"""The plan of a job is data: a pure function of what the operator and the context say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sparkddp.hooks.plan import (
    DYNAMIC,
    Task,
    check_conf,
    plan_job,
    require_airflow,
    run_dir,
    spark_conf,
)
from tests.support.refusals import refused

TASK = Task("flights", "train", "manual__2026-01-01T00:00:00+00:00", -1, 2)


def conf(kind: str = "train", master: str = "spark://host:7077", given: Any = None, **settings: Any) -> dict[str, str]:
    return spark_conf(kind, settings, given, master, "/usr/bin/python3")


def test_a_job_lies_in_the_folder_of_its_own_try() -> None:
    job = plan_job("train", {"features": ["a"]}, TASK, "file:///run", "n1", ())
    assert (job.directory, job.nonce, job.label) == ("file:///run/train/unmapped/2-n1", "n1", "flights.train")


def test_mapped_copies_have_folders_and_labels_of_their_own() -> None:
    job = plan_job("train", {}, Task("flights", "train", "r", 3, 1), "file:///run", "n1", ())
    assert (job.directory, job.label) == ("file:///run/train/3/1-n1", "flights.train[3]")


def test_all_tries_of_a_task_instance_have_one_owner_and_no_other_has_it() -> None:
    def owner(**change: Any) -> str:
        return plan_job("train", {}, replace(TASK, **change), "file:///run", "n1", ()).owner

    assert owner(try_number=1) == owner(try_number=2)
    others = [{"dag_id": "x"}, {"task_id": "x"}, {"run_id": "x"}, {"map_index": 0}]
    assert len({owner(), *(owner(**change) for change in others)}) == 5


def test_the_run_directory_is_the_operators_or_below_the_storage_root() -> None:
    assert run_dir({"run_dir": "s3://b/mine"}, "file:///storage", TASK) == "s3://b/mine"
    assert run_dir({"run_dir": None}, "file:///storage", TASK).startswith(
        "file:///storage/flights/manual__2026-01-01T00_00"
    )
    with refused("SDDP-107", "storage_root"):
        run_dir({}, "/bare/path", TASK)


@pytest.mark.parametrize("value", [True, "true", "True", " TRUE ", "tRue"])
def test_dynamic_allocation_is_refused_however_it_is_spelled(value: Any) -> None:
    with refused("SDDP-105", DYNAMIC, "num_executors"):
        check_conf({DYNAMIC: value})
    with refused("SDDP-105"):
        conf(given={DYNAMIC: value})


@pytest.mark.parametrize("given", [None, {}, {DYNAMIC: False}, {DYNAMIC: "false"}])
def test_without_it_dynamic_allocation_is_switched_off(given: Any) -> None:
    assert conf(given=given)[DYNAMIC] == "false"


def test_what_the_user_sets_wins_over_our_defaults_as_spark_writes_it() -> None:
    given = {"spark.log.level": "INFO", "spark.speculation": True, "spark.executor.cores": 4}
    merged = conf(given=given)
    assert {key: merged[key] for key in given} == {
        "spark.log.level": "INFO",
        "spark.speculation": "true",
        "spark.executor.cores": "4",
    }


def test_the_ranks_run_the_workers_interpreter_on_a_local_master_alone() -> None:
    assert conf(master="local[2]")["spark.pyspark.python"] == "/usr/bin/python3"
    assert "spark.pyspark.python" not in conf()
    assert conf()["spark.pyspark.driver.python"] == "/usr/bin/python3"


def test_cpus_per_rank_are_sparks_cpus_a_task() -> None:
    assert conf(cpus_per_rank=4)["spark.task.cpus"] == "4"
    assert "spark.task.cpus" not in conf()


def test_a_task_of_several_ranks_has_the_cores_and_gpus_of_all() -> None:
    amounts = conf(cpus_per_rank=3, ranks_per_task=4, devices=8, trainer={"accelerator": "cuda"})
    assert amounts["spark.task.cpus"] == "12"
    assert amounts["spark.task.resource.gpu.amount"] == "4"
    assert amounts["spark.executor.resource.gpu.amount"] == "8"
    assert conf(ranks_per_task=2)["spark.task.cpus"] == "2"
    across = conf(num_nodes=4, devices=1, ranks_per_task=2, trainer={"accelerator": "cuda"})
    assert across["spark.executor.resource.gpu.amount"] == "2", "an executor must hold a whole task"


def test_a_range_of_ports_is_sparks_too_unless_the_user_says_otherwise() -> None:
    merged = conf(port_range="34000-34100", given={"spark.blockManager.port": 7100})
    assert (merged["spark.driver.port"], merged["spark.blockManager.port"]) == ("34000", "7100")
    assert merged["spark.port.maxRetries"] == "100"
    assert not [key for key in conf() if key.endswith(".port")]


@pytest.mark.parametrize("accelerator", ["cuda", "gpu"])
def test_a_training_on_gpus_asks_for_one_a_rank_and_devices_a_node(accelerator: str) -> None:
    amounts = conf(devices=4, trainer={"accelerator": accelerator})
    assert amounts["spark.task.resource.gpu.amount"] == "1"
    assert amounts["spark.executor.resource.gpu.amount"] == "4"
    alone = conf(devices=None, trainer={"accelerator": accelerator})
    assert alone["spark.executor.resource.gpu.amount"] == "1"


@pytest.mark.parametrize(
    ("kind", "trainer"), [("train", None), ("train", {"accelerator": "auto"}), ("partition", {"accelerator": "cuda"})]
)
def test_nothing_else_asks_for_gpus(kind: str, trainer: Any) -> None:
    assert not [key for key in conf(kind, trainer=trainer) if "gpu" in key]


def test_every_value_is_text_as_a_command_line_needs_it() -> None:
    merged = conf(given={"spark.a": 1, "spark.b": False}, cpus_per_rank=2, trainer={"accelerator": "gpu"})
    assert all(isinstance(value, str) for value in merged.values())


def test_no_gpu_is_asked_of_a_local_master_which_assigns_none() -> None:
    asked = conf(master="local[2]", trainer={"accelerator": "cuda"})
    assert not [key for key in asked if "gpu" in key]


def test_a_python_worker_that_trained_is_not_used_again() -> None:
    assert conf("train")["spark.python.worker.reuse"] == "false"
    assert "spark.python.worker.reuse" not in conf("partition")


@pytest.mark.parametrize("version", ["2.10.5", "3.0.6", "3.4.0", "3.10.0"])
def test_an_airflow_that_was_never_tried_is_refused(version: str) -> None:
    with refused("SDDP-110", version, "3.3"):
        require_airflow(version)


@pytest.mark.parametrize("version", ["3.1.0", "3.2.4", "3.3.2"])
def test_the_airflows_that_are_supported_pass(version: str) -> None:
    require_airflow(version)
