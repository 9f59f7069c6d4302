"""Runs one case and writes its record: `python -m benchmarks.run partition_rows`."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from benchmarks import cases, machine
from benchmarks.record import Record, file_name
from benchmarks.setup import NotMeasurable, Setup, said

RESULTS = Path(__file__).parent / "results"
SMOKE = "A smoke run on a tiny table: it shows that the case works; its figures mean nothing."
# Processes that want to run, over the last minute; this one has only just begun.
BUSY = 0.5
EPILOG = """\
what a run does
  It makes the case's table once, starts one Spark session, and runs the baseline and ours in turn (A B C, A B C, …):
  once to warm up, then --repeat times. Each run writes into a new folder, which is deleted outside of the timing.
  Everything lies in a temporary folder (below --data) and is gone at the end. The largest case needs 20 GB there.

how to read a record
  ratio    median of ours / median of the baseline, from the same session: below 1 ours is faster. Seconds depend on the
           machine, ratios hardly do: compare ratios.
  spread   the least and the greatest ratio of a round's pair. A limit that lies inside of the spread is neither kept nor
           broken for sure: run again on a quiet machine.
  verdict  met or missed, by the ratio of the medians. The exit status is 0 either way; it says that the run worked.

examples
  python -m benchmarks.run --list
  python -m benchmarks.run partition_rows
  python -m benchmarks.run partition_growth --repeat 3 --data /mnt/scratch
  python -m benchmarks.run partition_groups --smoke        a try in seconds; prints its record and keeps none
"""


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(cases.__path__))


def case(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.cases.{name}")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0: measured, or there is nothing to measure in this version; 2: a wrong argument."""
    arguments = _parser().parse_args(argv)
    if arguments.list:
        print("\n".join(f"{name:22}{case(name).ROWS:>12,} rows  {_first_line(case(name))}" for name in names()))
        return 0
    if not arguments.case:
        _parser().error("name a case, or use --list")
    _require_size(arguments)
    load = machine.load()
    _warn_if_busy(arguments.smoke, load)
    with tempfile.TemporaryDirectory(
        prefix="sparkddp-bench-", dir=arguments.data, ignore_cleanup_errors=True
    ) as folder:
        try:
            record = case(arguments.case).run(_setup(arguments, Path(folder)))
        except NotMeasurable as error:
            print(f"{arguments.case}: skipped: {error}")
            return 0
    _tell(arguments, record, load)
    return 0


def _setup(arguments: argparse.Namespace, scratch: Path) -> Setup:
    module = case(arguments.case)
    return Setup(
        rows=arguments.rows or (module.SMOKE_ROWS if arguments.smoke else module.ROWS),
        repeat=arguments.repeat or (1 if arguments.smoke else 5),
        scratch=scratch,
        master=arguments.master,
        driver_memory=arguments.driver_memory,
    )


def _tell(arguments: argparse.Namespace, record: Record, load: float) -> None:
    """Print the record; write it too, unless it is a smoke run's and no folder was named for it."""
    facts = {**machine.facts(record.java), "load before": f"{load:.1f}"}
    text = record.to_text(arguments.case, facts, SMOKE if arguments.smoke else "")
    print(f"\n{text}")
    out = arguments.out or (None if arguments.smoke else RESULTS)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        path = out / file_name(arguments.case, machine.hardware(), time.strftime("%Y-%m"))
        path.write_text(text, encoding="utf-8")
        print(f"written: {path}")


def _require_size(arguments: argparse.Namespace) -> None:
    least = case(arguments.case).SMOKE_ROWS
    if arguments.rows and arguments.rows < least:
        _parser().error(f"--rows {arguments.rows} is too small for {arguments.case}: use {least} or more")


def _warn_if_busy(smoke: bool, load: float) -> None:
    if not smoke and load > BUSY:
        said(f"warning: {load:.1f} other processes want to run; the spread will tell how much that disturbs")


def _first_line(module: ModuleType) -> str:
    return (module.__doc__ or "").partition("\n")[0]


def _positive(text: str) -> int:
    number = int(text.replace("_", "").replace(",", ""))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is too small: use 1 or more")
    return number


def _folder(text: str) -> Path:
    path = Path(text).absolute()
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description="Measure one case against its baseline in the same Spark session, and write a record of it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("case", nargs="?", choices=names(), metavar="case", help=f"one of: {', '.join(names())}")
    parser.add_argument("--list", action="store_true", help="say what each case measures")
    parser.add_argument("--repeat", type=_positive, help="timed rounds (5; 1 with --smoke)")
    parser.add_argument("--rows", type=_positive, help="size of the table; the default is the case's own, see --list")
    parser.add_argument("--out", type=Path, help="folder of the records (benchmarks/results)")
    parser.add_argument(
        "--data", type=_folder, help="folder with room for tables and outputs (the system's own for temporary files)"
    )
    parser.add_argument("--master", default="local[2]", help="of Spark (%(default)s)")
    parser.add_argument("--driver-memory", default="4g", help="spark.driver.memory (%(default)s)")
    parser.add_argument("--smoke", action="store_true", help="a tiny table, one round: does the case work?")
    return parser


if __name__ == "__main__":
    # What is stopped from outside cleans up too: there may be gigabytes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
