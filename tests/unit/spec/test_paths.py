"""Names that every file system takes, and URIs that mean one place to Python, Spark and Airflow."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.paths import TryDir, absolute_uri, slug
from tests.support.refusals import refused

RUN_ID = "manual__2026-01-01T00:00:00+00:00"

# Texts that are likely to collide: few characters, and what a slug itself looks like.
NAMES = st.text(st.sampled_from("aB_.-:+/ é"), max_size=8) | st.text(max_size=80)
NAMES |= NAMES.map(slug)


@given(NAMES, NAMES)
@example("a:b", "a+b")
@example("a:b", slug("a:b"))
@example("x" * 61, "x" * 62)
@example("", "x")
def test_two_texts_never_share_a_slug(first: str, second: str) -> None:
    assert (slug(first) == slug(second)) == (first == second)


@given(NAMES)
def test_a_slug_is_safe_in_every_path_and_seen_by_spark(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9-][A-Za-z0-9_.-]{0,79}", slug(text))


def test_a_harmless_name_is_its_own_slug() -> None:
    assert slug("flight_delay.train-2") == "flight_delay.train-2"


@pytest.mark.parametrize("text", ["_hidden", ".hidden", "..", ".", "__init__"])
def test_a_name_that_spark_would_skip_gets_another_beginning(text: str) -> None:
    assert not slug(text).startswith(("_", "."))
    assert slug(text) != slug(text.lstrip("._"))


def test_the_default_run_directory_holds_no_colon_and_no_plus() -> None:
    uri = paths.default_run_dir("file:///shared/", "flights", RUN_ID)
    folder = uri.removeprefix("file:///shared/flights/")
    assert folder.startswith("manual__2026-01-01T00_00_00_00_00-")
    assert not {":", "+", "/"} & set(folder)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("file:///shared/runs", "file:///shared/runs"),
        ("file:///shared//runs/./a/", "file:///shared/runs/a"),
        ("file:/shared", "file:///shared"),
        ("file://localhost/shared", "file:///shared"),
        ("file:///with%20space", "file:///with space"),
        ("FILE:///Shared", "file:///Shared"),
        ("  file:///shared\n", "file:///shared"),
        ("file:///", "file:///"),
        ("s3://bucket/prefix/", "s3://bucket/prefix"),
        ("S3A://bucket", "s3a://bucket"),
        ("gs://bucket/a b", "gs://bucket/a b"),
        ("abfss://box@account.dfs.core.windows.net/x", "abfss://box@account.dfs.core.windows.net/x"),
        ("hdfs:///user/a", "hdfs:///user/a"),
        ("hdfs://name:8020/a", "hdfs://name:8020/a"),
        ("dbfs:///mnt/a", "dbfs:///mnt/a"),
        ("s3://bucket/[odd", "s3://bucket/[odd"),
    ],
)
def test_an_absolute_uri_has_one_spelling(written: str, meant: str) -> None:
    assert absolute_uri(written, "run_dir") == meant
    assert absolute_uri(meant, "run_dir") == meant, "read twice, it must mean the same"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("/shared/runs", "has no scheme"),
        ("runs", "has no scheme"),
        ("", "has no scheme"),
        ("1://x", "has no scheme"),
        ("ftp://host/x", "'ftp'"),
        ("http://host/x", "'http'"),
        ("C:\\runs", "'c'"),
        ("file://host/x", "not an absolute path"),
        ("file:x", "not an absolute path"),
        ("file://", "not an absolute path"),
        ("file:///a/../b", "'..'"),
        ("file:///a/%2e%2e/b", "'..'"),
        ("s3://bucket/../other", "'..'"),
        ("file:///a%2520b", "'%'"),
        ("file:///a%23b", "'#'"),
        ("file:///a?b", "'?'"),
        ("s3:bucket/x", "names no place"),
        ("dbfs:/mnt/x", "names no place"),
        ("s3://", "names no place"),
    ],
)
def test_a_path_that_could_mean_two_places_is_refused(written: str, told: str) -> None:
    with refused("SDDP-107", told, f"run_dir={written!r}"):
        absolute_uri(written, "run_dir")


@pytest.mark.parametrize("scheme", paths.SCHEMES)
def test_every_scheme_has_a_form_for_fsspec_and_one_for_hadoop(scheme: str) -> None:
    for_python, for_spark = paths.SCHEMES[scheme]
    uri = f"{scheme}:///place" if scheme in ("file", "hdfs", "dbfs") else f"{scheme}://place/x"
    assert absolute_uri(uri, "run_dir") == uri
    assert paths.fsspec_uri(uri) == uri.replace(scheme, for_python, 1)
    assert paths.hadoop_uri(uri) == uri.replace(scheme, for_spark, 1)


def test_s3_is_s3_to_python_and_s3a_to_spark_however_it_is_written() -> None:
    for uri in ("s3://bucket/x", "s3a://bucket/x"):
        assert (paths.fsspec_uri(uri), paths.hadoop_uri(uri)) == ("s3://bucket/x", "s3a://bucket/x")


def test_join_and_parent_undo_one_another() -> None:
    assert paths.parent(paths.join("s3://bucket/run/", "data", "a.parquet")) == "s3://bucket/run/data"


def test_tries_and_mapped_copies_of_a_task_have_folders_of_their_own() -> None:
    places = [(task, index, number) for task in ("a", "a:b") for index in (-1, 0, 10) for number in (1, 2)]
    folders = {TryDir.of("file:///run", task, index, number, "n1").uri for task, index, number in places}
    assert len(folders) == len(places)
    assert TryDir.of("file:///run", "train", -1, 2, "n1").file("result.json") == (
        "file:///run/train/unmapped/2-n1/result.json"
    )


INSTANCES = st.tuples(NAMES, NAMES, NAMES, st.integers(-1, 3))


@given(INSTANCES, INSTANCES)
@example(("a", "b", "c", -1), ("a", "b", "c", 0))
@example(("a/b", "c", "d", -1), ("a", "b/c", "d", -1))
def test_an_owner_names_one_task_instance_and_whose_runs_are_the_same_task(first: Any, second: Any) -> None:
    one, other = paths.owner(*first), paths.owner(*second)
    assert (one == other) == (first == second)
    same = (first[0], first[2:]) == (second[0], second[2:])
    assert paths.same_task(one, other) == same


@pytest.mark.parametrize("other", ["", "a", "a/b/c", "a/b/c/unmapped/d"])
def test_what_is_no_owner_is_nobody_s_task(other: str) -> None:
    assert not paths.same_task(other, other)
    assert not paths.same_task("a/b/c/unmapped", other)


def test_a_folder_of_a_try_tells_its_number() -> None:
    folder = TryDir.of("file:///run", "train", 3, 12, "48407e9bf602")
    assert paths.try_number(folder.uri.rpartition("/")[2]) == 12


@pytest.mark.parametrize("name", ["replay-0123abcd", "1", "-1-abc", "1-abc.json", "1-", "job.json", "x1-abc"])
def test_another_name_is_no_try(name: str) -> None:
    assert paths.try_number(name) is None
