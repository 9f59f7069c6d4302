"""Every error a user can meet: a code, what was set, what it conflicts with, what to do.

`docs/reference/errors.md` is made from `CODES`; a test holds the two together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Code:
    """One kind of error: its title, and whether Airflow may mend it by trying the task again."""

    title: str
    retry: bool = False


CODES: dict[str, Code] = {
    # 1xx: arguments, refused before Spark is asked
    "SDDP-101": Code("An argument has the wrong type or value"),
    "SDDP-102": Code("An argument that is not built yet"),
    "SDDP-103": Code("An unknown Trainer argument, or one that the operator decides"),
    "SDDP-104": Code("A combination of accelerator, strategy and precision that is refused"),
    "SDDP-105": Code("Dynamic allocation with barrier mode"),
    "SDDP-106": Code("The Spark connection is missing or of another kind"),
    "SDDP-107": Code("A path that is not an absolute URI, or a scheme that is not known"),
    "SDDP-108": Code("py_files that cannot be found or packed"),
    "SDDP-109": Code("Java or Spark's launcher is missing"),
    "SDDP-110": Code("A version that is not supported"),
    "SDDP-111": Code("A secret where it would be seen"),
    "SDDP-112": Code("The database connection is missing or incomplete"),
    "SDDP-113": Code("Archives that executors cannot use"),
    # 2xx: the data
    "SDDP-201": Code("The source has no rows"),
    "SDDP-202": Code("Fewer rows or groups than ranks"),
    "SDDP-203": Code("The source could not be read"),
    "SDDP-204": Code("A column is missing, doubled or reserved"),
    "SDDP-205": Code("A column type that cannot be trained on"),
    "SDDP-206": Code("Nulls, NaN or infinities in a feature or target"),
    "SDDP-207": Code("Numbers that float32 cannot hold"),
    "SDDP-208": Code("The manifest is missing, changed or not a manifest"),
    "SDDP-209": Code("A partition file is missing or changed"),
    "SDDP-210": Code("Dates outside of the years 1 to 9999"),
    "SDDP-211": Code("The data drifted beyond a gate"),
    "SDDP-212": Code("The source's files disagree or are malformed"),
    "SDDP-213": Code("A column that cannot be encoded as asked"),
    # 3xx: storage and the cluster
    "SDDP-301": Code("Storage cannot be written or read", retry=True),
    "SDDP-302": Code("The run directory is not shared"),
    "SDDP-303": Code("Fewer Spark slots than ranks", retry=True),
    "SDDP-304": Code("No result: the driver ended without one", retry=True),
    "SDDP-305": Code("A result of another try"),
    "SDDP-306": Code("A protocol number or file kind that this version does not read"),
    "SDDP-307": Code("A GPU was asked for where Spark gave none"),
    "SDDP-308": Code("Spark could not run the job", retry=True),
    "SDDP-309": Code("The job was cancelled", retry=True),
    "SDDP-310": Code("Spark lacks a package for the source or the storage"),
    "SDDP-311": Code("A package is missing on an executor, or of another version than elsewhere"),
    "SDDP-312": Code("No free port in port_range", retry=True),
    # 4xx: training
    "SDDP-401": Code("The model cannot be imported"),
    "SDDP-402": Code("The model is not a LightningModule"),
    "SDDP-403": Code("The model's constructor refuses model_kwargs"),
    "SDDP-404": Code("A rank failed"),
    "SDDP-405": Code("A rank was lost", retry=True),
    "SDDP-406": Code("The loss is NaN or infinite"),
    "SDDP-407": Code("Output and target differ in shape"),
    "SDDP-408": Code("The model lacks what the strategy needs"),
    "SDDP-409": Code("An object of your own that is not what its place asks for"),
    "SDDP-410": Code("A monitored metric that is not logged, or not by every rank"),
    "SDDP-411": Code("Parameters without a gradient under plain ddp"),
    "SDDP-412": Code("A training_step without a loss"),
    "SDDP-413": Code("A model without an optimizer"),
    "SDDP-414": Code("Ranks that are not Spark's tasks"),
    "SDDP-415": Code("Tuning that finds nothing"),
    # 5xx: models and validation
    "SDDP-501": Code("An exported file is missing, truncated or foreign"),
    "SDDP-502": Code("A class outside of trusted_modules"),
    "SDDP-503": Code("The weights do not fit the model"),
    "SDDP-504": Code("Rows that the model cannot predict"),
    "SDDP-505": Code("Validation failed"),
    "SDDP-506": Code("A checkpoint whose weights cannot be read"),
}


class SparkDDPError(Exception):
    """An error with a code of `CODES`.

    Args:
        code: key of `CODES`.
        message: what was set or found, and what it conflicts with.
        remedy: what to do.
        details: what a machine may want besides (rank, host, traceback): plain JSON values.
    """

    def __init__(self, code: str, message: str, remedy: str, details: dict[str, Any] | None = None) -> None:
        if code not in CODES:
            raise KeyError(code)
        self.code, self.message, self.remedy, self.details = code, message, remedy, details or {}
        stop = "" if message.rstrip().endswith((".", "!", "?")) else "."
        super().__init__(f"[{code}] {CODES[code].title}: {message}{stop} What to do: {remedy}")

    @property
    def retry(self) -> bool:
        """Whether trying the task again, unchanged, can succeed."""
        return bool(self.details.get("retry", CODES[self.code].retry))

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions with several arguments don't survive a process border by default.
        return SparkDDPError, (self.code, self.message, self.remedy, self.details)


@dataclass(frozen=True)
class Failure:
    """A failure as plain data, as it crosses the border in result.json."""

    code: str
    message: str
    remedy: str
    details: dict[str, Any]

    @classmethod
    def of(cls, error: SparkDDPError) -> Failure:
        return cls(error.code, error.message, error.remedy, error.details)

    def error(self) -> SparkDDPError:
        return SparkDDPError(self.code, self.message, self.remedy, self.details)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint for a misspelt name: "Did you mean 'x'? " or nothing."""
    lowered = {each.lower(): each for each in valid}
    found = difflib.get_close_matches(str(name).lower(), list(lowered), n=1, cutoff=0.5)
    return f"Did you mean {lowered[found[0]]!r}? " if found else ""
