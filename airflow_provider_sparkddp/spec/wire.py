"""How plain data crosses a border: JSON with a kind and a protocol number; a reader refuses another's."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from airflow_provider_sparkddp.spec.errors import SparkDDPError

PROTOCOL = 1


def pack(kind: str, body: dict[str, Any]) -> str:
    """The text of a file of the given kind. NaN and infinities are refused: they aren't JSON."""
    envelope = {"kind": f"sparkddp/{kind}", "protocol": PROTOCOL, "checksum": checksum(body), "body": body}
    # Keys in their order: that of a dict of columns is meant. The checksum is over sorted ones.
    return json.dumps(envelope, indent=1, allow_nan=False) + "\n"


def checksum(body: dict[str, Any]) -> str:
    """SHA-256 over the canonical JSON of the body, so that a changed or cut file is found out."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()


def unpack(kind: str, text: str, where: str, code: str = "SDDP-306") -> dict[str, Any]:
    """The body of a file of the given kind.

    Raises:
        SparkDDPError: `code` when the text is not JSON, of another kind, or was changed; SDDP-306 when it is of
            another protocol.
    """
    envelope = _envelope(text, where, code)
    if envelope.get("kind") != f"sparkddp/{kind}":
        raise SparkDDPError(
            code,
            f"{where} is of kind {envelope.get('kind')!r}, not 'sparkddp/{kind}'.",
            f"Give the path of a {kind} file written by this provider.",
        )
    if envelope.get("protocol") != PROTOCOL:
        raise SparkDDPError(
            "SDDP-306",
            f"{where} has protocol {envelope.get('protocol')!r}; this version reads {PROTOCOL}.",
            "Use the same version of airflow-provider-sparkddp on both sides, or write the file anew.",
        )
    body = envelope.get("body")
    if not isinstance(body, dict) or envelope.get("checksum") != checksum(body):
        raise SparkDDPError(
            code,
            f"{where} was changed after it was written (its checksum differs).",
            "Run the task that wrote it again; never edit it by hand.",
        )
    return body


def _envelope(text: str, where: str, code: str) -> dict[str, Any]:
    try:
        envelope = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise SparkDDPError(
            code,
            f"{where} is not whole JSON ({error}).",
            "Run the task that wrote it again.",
        ) from None
    return envelope if isinstance(envelope, dict) else {}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
