"""Which names carry a secret, and the line in which secrets travel.

The value of such a name would stand in job.json, in a command line and in Airflow's rendered fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec.errors import SparkDDPError

# By how a name ends: `…secret.file` and `…credentials.provider` are paths and classes, not secrets.
SECRET = re.compile(
    r"(secret([._-]?key)?|passw(or)?d|(^|[._-]|[a-z])token|access[._-]?key([._-]?id)?|api[._-]?key|private[._-]?key)$"
    r"|account[._-]key[._]",
    re.IGNORECASE,
)

# In a URL: `password=…`, `…;pwd=…`, or `//user:password@host`.
SECRET_IN_TEXT = re.compile(
    r"(passw(or)?d|pwd|passphrase|secret([._-]?key)?|token|api[._-]?key)\s*=\s*[^\s&;]|//[^/@\s:]*:[^/@\s]+@",
    re.IGNORECASE,
)


def refuse_secrets(name: str, values: Mapping[str, Any] | None, remedy: str) -> None:
    """Raises SparkDDPError SDDP-111 naming the key, never the value: by the key's name, or by what a text holds."""
    for key, value in (values or {}).items():
        if SECRET.search(str(key)):
            raise SparkDDPError(
                "SDDP-111", f"{name} holds {str(key)!r}, which would show its value in logs and command lines.", remedy
            )
        if isinstance(value, Mapping):
            refuse_secrets(f"{name}[{str(key)!r}]", value, remedy)
        refuse_secret_text(f"{name}[{str(key)!r}]", value, remedy)


def refuse_secret_text(name: str, value: Any, remedy: str) -> None:
    """Raises SparkDDPError SDDP-111, never with the value, for a text such as a URL with a password in it."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, Mapping):
            refuse_secrets(name, text, remedy)
        if isinstance(text, str) and SECRET_IN_TEXT.search(text):
            raise SparkDDPError(
                "SDDP-111", f"{name} holds a password or key, which would show in logs and command lines.", remedy
            )


def to_line(secrets: Mapping[str, str]) -> bytes:
    """One line for the parent pipe: see docs/decisions/0012."""
    return json.dumps({"secrets": dict(secrets)}).encode() + b"\n"


def from_line(line: bytes) -> dict[str, str]:
    return {str(name): str(value) for name, value in json.loads(line)["secrets"].items()}
