"""What a training says of itself at its end: the XCom's values, the lines for a person, the report in result.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp.runtime.jobs.outcome import table
from airflow_provider_sparkddp.runtime.progress.slow_ranks import SlowRank, slow_ranks
from airflow_provider_sparkddp.runtime.training import start
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.jobs import Job

Reports = Sequence[Mapping[str, Any]]
# An XCom stays below 48 KiB; all of it stands in the report.
VALUES_OF_METRICS, VALUES_OF_EPOCHS, VALUES_OF_RANKS, VALUES_OF_SLOW = 200, 100, 500, 20
LINES_OF_RANKS, LINES_OF_EPOCHS = 50, 20
# Of a rank's report, what others of its report already hold or nobody looks for.
_NOT_OF_RANKS = (
    "history",
    "logged",
    "metrics",
    "epochs",
    "model",
    "class_module",
    "first_step_at",
    "best",
    "skipped_steps",
    "init_from",
    "batch_size",
    "tune",
    "loggers",
    "logs_lost",
)


def values(job: Job, reports: Reports, of_ranks: Mapping[str, Any]) -> dict[str, Any]:
    first, world_size = reports[0], of_ranks["world_size"]
    history = first["history"]
    return {
        "model": paths.join(job.directory, paths.MODEL),
        "alias": job.settings["alias"],
        "metrics": dict(list(first["metrics"].items())[:VALUES_OF_METRICS]),
        **_found(first),
        "epochs": first["epochs"],
        "losses": [entry["loss"] for entry in history][-VALUES_OF_EPOCHS:],
        "world_size": world_size,
        "batch_size": first["batch_size"],
        "global_batch_size": first["batch_size"] * world_size,
        **{name: first[name] for name in ("tune", "loggers", "logs_lost") if first[name]},
        "rows_per_second": history[-1]["rows_per_second"] if history else None,
        "data_wait": max(report["data_wait"] for report in reports),
        "memory_bytes": max(report["memory_bytes"] for report in reports),
        "gpu_memory_bytes": max(report["gpu_memory_bytes"] or 0 for report in reports) or None,
        "slow_ranks": [slow.to_json() for slow in _slow(reports)][:VALUES_OF_SLOW],
        "first_step_at": first["first_step_at"],
        "accelerator": first["accelerator"],
        "strategy": first["strategy"],
        "precision": first["precision"],
        "class_module": first["class_module"],
        "sha256": first["model"]["sha256"],
        **{name: first[name] for name in ("init_from",) if name in first},
        "rows": of_ranks["rank_rows"] if world_size <= VALUES_OF_RANKS else [],
        "logs": paths.join(job.directory, paths.LOGS),
    }


def report(job: Job, reports: Reports) -> dict[str, Any]:
    """All of it: for each rank its figures, for each epoch its losses and metrics, and every metric that was logged."""
    first = reports[0]
    return {
        "ranks": [{k: v for k, v in each.items() if k not in _NOT_OF_RANKS} for each in reports],
        "slow_ranks": [slow.to_json() for slow in _slow(reports)],
        "metrics": first["metrics"],
        **_found(first),
        "epochs": first["history"],
        "history": first["logged"],
        "tune": first["tune"],
        "logs": paths.join(job.directory, paths.LOGS),
    }


def _found(first: Mapping[str, Any]) -> dict[str, Any]:
    """What best_weights chose and on_nan="skip" left out, where they were set."""
    return {name: first[name] for name in ("best", "skipped_steps") if name in first}


def _steered(first: Mapping[str, Any]) -> list[str]:
    lines = []
    if best := first.get("best"):
        where = f"epoch {best['epoch'] + 1}, step {best['step']:,}"
        lines.append(f"weights and metrics are those of the best {best['monitor']}, {best['value']:.6g}, at {where}")
    if skipped := first.get("skipped_steps"):
        lines.append(f"{skipped:,} steps were skipped: loss or gradient was NaN or infinite")
    return lines


def _slow(reports: Reports) -> list[SlowRank]:
    data, compute = ([each[name] for each in reports] for name in ("data_seconds", "step_seconds"))
    return slow_ranks(data, compute, max(each["train_seconds"] for each in reports))


def summary(job: Job, reports: Reports, of_ranks: Mapping[str, Any]) -> list[str]:
    first, world_size, batch = reports[0], of_ranks["world_size"], reports[0]["batch_size"]
    # What a model logs as its loss is the loss that stands there already.
    names = sorted({name for entry in first["history"] for name in entry["metrics"]} - {"loss"})
    epochs = [
        [entry["epoch"] + 1, entry["loss"], *(entry["metrics"].get(name) for name in names), entry["rows_per_second"]]
        for entry in first["history"][-LINES_OF_EPOCHS:]
    ]
    return [
        f"{world_size} ranks, {first['strategy']}, {first['precision']}, batch {batch:,} a rank, "
        f"{batch * world_size:,} in all",
        *start.summary(first.get("init_from", {})),
        *_tuned(first["tune"]),
        *_ranks(reports, of_ranks["rank_bytes"]),
        *table(["epoch", "loss", *names, "rows/s"], epochs),
        *_steered(first),
        *(f"rank {slow.rank} on {reports[slow.rank]['host']} is {slow}" for slow in _slow(reports)[:VALUES_OF_SLOW]),
        *_lost(reports),
        *(f"{label}: {uri or 'no files of its own'}" for label, uri in first["loggers"].items()),
        *([f"not all of these files are there: {first['logs_lost']}"] if first["logs_lost"] else []),
        f"Logs of the ranks: {paths.join(job.directory, paths.LOGS)}",
    ]


def _tuned(found: Mapping[str, Any]) -> Iterator[str]:
    if size := found.get("batch_size"):
        yield f"batch size found: {size['suggestion']:,} of at most {size['limit']:,}, in {size['seconds']:.1f} s"
    if rate := found.get("lr"):
        yield f"learning rate found: {rate['attribute']} = {rate['suggestion']:.4g}, in {rate['seconds']:.1f} s"


def _ranks(reports: Reports, rank_bytes: Sequence[int]) -> list[str]:
    header = [
        "rank",
        "host",
        "device",
        "threads",
        "rows",
        "bytes",
        "steps",
        "rows/s",
        "data wait",
        "memory",
        "GPU memory",
    ]
    rows = [
        [
            each["rank"],
            each["host"],
            ",".join(each["gpus"]) or each["accelerator"],
            each["threads"],
            each["rows"],
            rank_bytes[each["rank"]],
            each["steps"],
            each["rows_per_second"],
            f"{each['data_wait']:.0%}",
            _mebibytes(each["memory_bytes"]),
            _mebibytes(each["gpu_memory_bytes"]),
        ]
        for each in reports[:LINES_OF_RANKS]
    ]
    return table(header, rows)


def _mebibytes(size: int | None) -> str | None:
    return None if size is None else f"{size / 2**20:,.0f} MiB"


def _lost(reports: Reports) -> list[str]:
    """The ranks of which storage doesn't hold all that they told; the training went on without it."""
    lines = []
    for each in reports:
        told = each["channel"]
        if told["lost"] or not told["log"]:
            log = "" if told["log"] else ", the end of its log"
            lines.append(f"rank {each['rank']} could not tell all: {told['lost']:,} messages{log} ({told['error']})")
        if told["untold"]:
            lines.append(f"rank {each['rank']} had {told['untold']:,} more warnings, which stand in its log")
    return lines[:LINES_OF_RANKS]
