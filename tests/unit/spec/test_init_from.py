"""init_from: the same meaning from an output, a path or a dict of both, as they are or rendered to text."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sparkddp.spec.arguments import UNKNOWN
from airflow_provider_sparkddp.spec.checks.start import check_init_from
from tests.support.refusals import refused

OUTPUT = {"model": "s3://b/champion", "alias": "net", "sha256": "0" * 64, "code": [], "trusted_modules": ["m"]}


@pytest.mark.parametrize(
    ("value", "path", "strict"),
    [
        ("s3://b/champion", "s3://b/champion", True),
        ("s3://b/champion/model.json", "s3://b/champion", True),
        ("file:///runs/last.ckpt", "file:///runs/last.ckpt", True),
        (OUTPUT, "s3://b/champion", True),
        (str(OUTPUT), "s3://b/champion", True),
        ({"path": OUTPUT, "strict": False}, "s3://b/champion", False),
        ({"path": str(OUTPUT), "strict": "False"}, "s3://b/champion", False),
        ({"path": "s3://b/champion", "strict": ""}, "s3://b/champion", True),
        ({"path": "s3://b/champion"}, "s3://b/champion", True),
        ("{'path': 's3://b/champion', 'strict': False}", "s3://b/champion", False),
        ({"path": UNKNOWN, "strict": False}, UNKNOWN, False),
        ({"path": {"model": UNKNOWN}, "strict": UNKNOWN}, UNKNOWN, UNKNOWN),
    ],
    ids=str,
)
def test_each_form_says_where_and_how_strictly(value: Any, path: Any, strict: Any) -> None:
    assert check_init_from(value) == {"path": path, "strict": strict}


@pytest.mark.parametrize(
    "value", [None, "", " ", "None", {}, {"path": ""}, {"path": "None", "strict": False}], ids=repr
)
def test_an_empty_field_starts_afresh(value: Any) -> None:
    assert check_init_from(value) is None


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        ("models/champion", "SDDP-107", "init_from='models/champion' has no scheme"),
        (["s3://b/a"], "SDDP-101", "init_from is ['s3://b/a']"),
        (7, "SDDP-101", "init_from is 7"),
        ({"path": "s3://b/a", "strikt": False}, "SDDP-101", "Did you mean 'strict'?"),
        ({"path": "s3://b/a", "strict": "maybe"}, "SDDP-101", "init_from['strict']='maybe'"),
        ({"path": {"verdict": "passed"}}, "SDDP-101", "{'verdict': 'passed'}"),
        ("{'path': ", "SDDP-101", "init_from=\"{'path': \""),
    ],
    ids=str,
)
def test_anything_else_is_refused_by_name(value: Any, code: str, text: str) -> None:
    with refused(code, text):
        check_init_from(value)
