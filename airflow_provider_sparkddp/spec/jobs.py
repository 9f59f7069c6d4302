"""A job as plain data: what an operator asks for, checked by one pure function that runs twice.

While the DAG is parsed it sees the values that are written out; when the task runs it sees all of them, after rendering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from airflow_provider_sparkddp.spec import checks, compat, wire
from airflow_provider_sparkddp.spec.arguments import Argument, check_arguments

PARTITION = "partition"
TRAIN = "train"
EXPORT = "export"
VALIDATE = "validate"

# Most rows of a row group, chosen by measurement: benchmarks/results.
ROW_GROUP_ROWS = 131_072

_COMMON = {"run_dir": Argument("str"), "storage_conn_id": Argument("str")}
_ON_SPARK = {"cpus_per_rank": Argument("int", minimum=1), "executors_timeout": Argument("float", minimum=0)}
ARGUMENTS: dict[str, dict[str, Argument]] = {
    PARTITION: {
        "source": Argument("dict", required=True),
        "num_nodes": Argument("int", required=True, minimum=1, default=1),
        "devices": Argument("int", required=True, minimum=1, default=1),
        "columns": Argument("columns"),
        "where": Argument("str"),
        "sample": Argument("float"),
        "limit": Argument("int", minimum=1),
        "shuffle": Argument("bool", required=True, default=True),
        "group_by": Argument("name_or_names"),
        "order_by": Argument("name_or_names"),
        "validation": Argument("any", default=0.1),
        "test": Argument("any"),
        # Above it Lightning would choose a seed of its own.
        "seed": Argument("int", required=True, minimum=0, maximum=2**32 - 1, default=0),
        "encode": Argument("dict"),
        "files_per_rank": Argument("int", required=True, minimum=1, maximum=10_000, default=1),
        "row_group_rows": Argument("int", required=True, minimum=1, maximum=2**31 - 1, default=ROW_GROUP_ROWS),
        "compression": Argument("str", required=True, default="snappy"),
        "writer": Argument("str", required=True, default="auto"),
        "compare_with": Argument("any"),
        "drift": Argument("dict"),
        "reuse": Argument("bool", required=True, default=False),
        "fingerprint": Argument("str"),
        "retention": Argument("float"),
        **_COMMON,
        **_ON_SPARK,
    },
    TRAIN: {
        "partitions": Argument("any", required=True),
        "num_nodes": Argument("int", minimum=1),
        "devices": Argument("int", minimum=1),
        "model": Argument("str", required=True),
        "model_kwargs": Argument("dict"),
        "alias": Argument("str"),
        "features": Argument("names", required=True),
        "target": Argument("str", required=True),
        "batch_size": Argument("int", required=True, minimum=1, default=1024),
        "trainer": Argument("dict"),
        "early_stopping": Argument("name_or_dict"),
        "best_weights": Argument("name_or_dict"),
        "init_from": Argument("any"),
        "on_nan": Argument("str", default="stop"),
        "max_restarts": Argument("int", minimum=0, default=0),
        "models": Argument("any"),
        "datamodule": Argument("any"),
        "datamodule_kwargs": Argument("any"),
        "loader": Argument("any"),
        "checkpoint": Argument("any"),
        "tune": Argument("dict"),
        "threads_per_rank": Argument("int", minimum=1),
        "port_range": Argument("str"),
        "ranks_per_task": Argument("int", required=True, minimum=1, default=1),
        **_COMMON,
        **_ON_SPARK,
    },
    EXPORT: {
        "model": Argument("any", required=True),
        "destination": Argument("str", required=True),
        "formats": Argument("names", required=True, default=("safetensors",)),
        "python": Argument("str"),
        "trusted_modules": Argument("names"),
        **_COMMON,
    },
    VALIDATE: {
        "model": Argument("any", required=True),
        "data": Argument("any", required=True),
        "metrics": Argument("dict"),
        "alias": Argument("str"),
        "python": Argument("str"),
        "trusted_modules": Argument("names"),
        **_COMMON,
    },
}


def defaults(kind: str) -> dict[str, Any]:
    """The arguments of an operator that have a default other than None, with it."""
    return {name: each.default for name, each in ARGUMENTS[kind].items() if each.default is not None}


def check(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operator, converted; values of `UNKNOWN` are left out and checked the next time.

    Raises:
        SparkDDPError: codes 101 to 107, each saying what was set, what it conflicts with and what to do.
    """
    compat.check_not_built(kind, values)
    converted = check_arguments(ARGUMENTS[kind], values)
    checks.CHECKS[kind](converted)
    return converted


@dataclass(frozen=True)
class CodeRef:
    """A zip of Python code in the run directory, named by its content. `modules`: the top-level names in it."""

    uri: str
    sha256: str
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """One try of one task.

    Attributes:
        directory: URI of the try's own folder.
        code: zips that go on the path of the driver and of every rank, the provider's own first.
        settings: the arguments after `check`, per kind.
        label: what a person calls the task, for names and logs.
        owner: `paths.owner` of the task instance, the same for all of its tries; empty in jobs of before it was written.
    """

    kind: str
    nonce: str
    directory: str
    label: str
    code: tuple[CodeRef, ...]
    settings: Mapping[str, Any]
    owner: str = ""

    def to_text(self) -> str:
        return wire.pack("job", asdict(self))

    @classmethod
    def from_text(cls, text: str, where: str) -> Job:
        body = wire.unpack("job", text, where)
        code = tuple(CodeRef(c["uri"], c["sha256"], tuple(c["modules"])) for c in body["code"])
        return cls(**{**body, "code": code})
