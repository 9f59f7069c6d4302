"""Devices come from Spark's addresses and from nothing else."""

from __future__ import annotations

import pytest

from airflow_provider_sparkddp.runtime.training.accelerators.choose import choose
from tests.support.refusals import refused


@pytest.mark.parametrize(
    ("requested", "gpus", "cuda_works", "chosen"),
    [
        ("cpu", (), False, "cpu"),
        ("cpu", ("0",), True, "cpu"),
        ("auto", (), False, "cpu"),
        ("auto", (), True, "cpu"),
        ("auto", ("0",), False, "cpu"),
        ("auto", ("0",), True, "cuda"),
        ("cuda", ("0",), True, "cuda"),
        ("gpu", ("1",), True, "cuda"),
    ],
)
def test_a_gpu_is_used_where_spark_gave_one_and_torch_finds_it(
    requested: str, gpus: tuple[str, ...], cuda_works: bool, chosen: str
) -> None:
    assert choose(requested, gpus, cuda_works) == chosen


@pytest.mark.parametrize("requested", ["cuda", "gpu"])
def test_a_gpu_that_spark_did_not_assign_is_refused_saying_how_to_ask_for_it(requested: str) -> None:
    with refused("SDDP-307", repr(requested), "spark.task.resource.gpu.amount"):
        choose(requested, (), cuda_works=True)


@pytest.mark.parametrize("requested", ["cuda", "gpu"])
def test_a_gpu_that_torch_does_not_find_is_refused_with_its_address(requested: str) -> None:
    with refused("SDDP-307", "GPU 3", "CUDA build of torch"):
        choose(requested, ("3",), cuda_works=False)
