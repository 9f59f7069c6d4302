"""result.json: what a job says of itself, written once, whole or not at all. It is the truth, not scraped logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from airflow_provider_sparkddp.spec import wire
from airflow_provider_sparkddp.spec.errors import Failure, SparkDDPError


@dataclass(frozen=True)
class JobResult:
    """The outcome of one try.

    Attributes:
        nonce: that of job.json; a reader refuses another's, so that a stale result can't turn a crash into a success.
        values: small plain data, the task's XCom.
        summary: lines for a person.
        report: what is too much for an XCom, plain data: a training's history of metrics and the figures of each rank.
        failure: set when the job failed; then values are empty.
    """

    kind: str
    nonce: str
    values: dict[str, Any] = field(default_factory=dict)
    summary: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    report: dict[str, Any] = field(default_factory=dict)

    def to_text(self) -> str:
        body = {
            "job_kind": self.kind,
            "nonce": self.nonce,
            "values": self.values,
            "summary": list(self.summary),
            "seconds": {k: round(v, 3) for k, v in self.seconds.items()},
            "failure": self.failure.to_json() if self.failure else None,
            "report": self.report,
        }
        return wire.pack("result", body)

    @classmethod
    def from_text(cls, text: str, where: str, nonce: str) -> JobResult:
        """Raises SparkDDPError SDDP-305 when the result is another try's, SDDP-306 when it is not a whole result."""
        body = wire.unpack("result", text, where)
        if body["nonce"] != nonce:
            raise SparkDDPError(
                "SDDP-305",
                f"{where} carries the nonce {body['nonce']!r}, this try's is {nonce!r}.",
                "Try the task again; each try has a folder of its own.",
            )
        return cls(
            kind=body["job_kind"],
            nonce=body["nonce"],
            values=body["values"],
            summary=tuple(body["summary"]),
            seconds=body["seconds"],
            failure=Failure(**body["failure"]) if body["failure"] else None,
            report=body.get("report", {}),
        )
