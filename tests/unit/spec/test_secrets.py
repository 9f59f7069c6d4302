"""A value that is named like a secret never gets into job.json or a command line."""

from __future__ import annotations

import pytest

from airflow_provider_sparkddp.hooks.plan import check_conf
from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.secrets import from_line, to_line
from tests.support.jobs import DEFAULTS

SECRETS = [
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.s3a.session.token",
    "spark.hadoop.fs.azure.account.key.mine.dfs.core.windows.net",
    "spark.authenticate.secret",
    "spark.ssl.keyPassword",
    "spark.kubernetes.authenticate.submission.oauthToken",
    "PASSWORD",
]
HARMLESS = [
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "spark.authenticate.secret.file",
    "spark.kubernetes.authenticate.submission.oauthTokenFile",
    "spark.executor.memory",
    "spark.hadoop.fs.s3a.endpoint",
    "spark.sql.parquet.compression.codec",
]


@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_in_conf_is_refused_without_its_value(key: str) -> None:
    with pytest.raises(SparkDDPError, match="SDDP-111.*properties_file") as caught:
        check_conf({key: "hunter2"})
    assert key in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", HARMLESS)
def test_what_is_no_secret_passes(key: str) -> None:
    check_conf({key: "x"})


@pytest.mark.parametrize(
    "source",
    [
        {"format": "jdbc", "path": "jdbc:postgresql://host/db", "options": {"user": "me", "password": "hunter2"}},
        {"callable": "my_sources:rows", "kwargs": {"api_key": "hunter2"}},
        {"format": "jdbc", "path": "x", "options": {"url": "jdbc:postgresql://host/db?user=me&password=hunter2"}},
        {"format": "csv", "path": "s3://me:hunter2@bucket/rows"},
        {"callable": "my_sources:rows", "kwargs": {"cfg": {"client_secret": "hunter2"}}},
        {"callable": "my_sources:rows", "kwargs": {"all": [{"api_token": "hunter2"}]}},
        {"format": "csv", "path": ["s3://bucket/a", "https://host/b?token=hunter2"]},
        {"callable": "my_sources:rows", "kwargs": {"dsn": "Server=host;Uid=me;Pwd=hunter2;"}},
    ],
)
def test_a_secret_in_a_source_is_refused_without_its_value(source: dict[str, object]) -> None:
    with pytest.raises(SparkDDPError, match="SDDP-111") as caught:
        jobs.check("partition", {**DEFAULTS[jobs.PARTITION], "source": source})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        {"format": "csv", "path": "s3://bucket/a=1/token/b@c:d", "options": {"sep": "=", "timestampFormat": "HH:mm"}},
        {"callable": "my_sources:rows", "kwargs": {"url": "https://host:8080/rows?day=1", "mail": "me@host"}},
    ],
)
def test_what_only_looks_a_little_like_one_passes(source: dict[str, object]) -> None:
    jobs.check("partition", {**DEFAULTS[jobs.PARTITION], "source": source})


@pytest.mark.parametrize("password", ["plain", "two\nlines\r\n", "\"quoted\" \\ 'it' \x00", "pässwörd 🔑", ""])
def test_secrets_travel_in_one_line_whatever_they_hold(password: str) -> None:
    line = to_line({"password": password})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert from_line(line) == {"password": password}


def test_no_secrets_are_a_line_too() -> None:
    assert from_line(to_line({})) == {}
