"""What Spark's exceptions say, by the texts of real ones."""

from __future__ import annotations

import pytest

from airflow_provider_sparkddp.runtime.sources import faults, reading
from airflow_provider_sparkddp.spec.errors import SparkDDPError

SOURCE = {"format": "csv", "path": "file:///data"}
# As Py4J gives it: a line of its own, Java's trace, what was suppressed meanwhile, and the causes.
TRACE = """An error occurred while calling o43.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 153.0 failed 1 times, most recent failure: \
Lost task 0.0 in stage 153.0 (TID 191) (192.0.2.2 executor driver): java.io.IOException: {0}

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1009)
\tat java.base/java.lang.Thread.run(Thread.java:840)
\tSuppressed: org.apache.hadoop.fs.FSError: java.io.IOException: something else
\t\tat org.apache.hadoop.fs.LocalFSFileOutputStream.write(RawLocalFileSystem.java:1)
\tCaused by: java.io.IOException: something else
\t... 4 more
Caused by: java.io.IOException: {0}
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:1)
\t... 12 more
"""


class FromPy4J(Exception):
    """Py4J's exceptions are told by this attribute; their text is made of Java's."""

    java_exception = None


class FromPySpark(Exception):
    """PySpark's own hold a message, and Java's trace apart."""

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message)
        self._stackTrace = trace


def py4j(said: str) -> FromPy4J:
    return FromPy4J(TRACE.replace("{0}", said))


def test_a_message_is_told_once_and_without_frames_or_what_was_suppressed() -> None:
    said = "Mkdirs failed to create file:/x%20y/out (exists=false, cwd=file:/tmp)"
    assert faults.readable(py4j(said)) == "Mkdirs failed to create file:/x y/out (exists=false, cwd=file:/tmp)."


def test_causes_say_what_the_outer_message_does_not() -> None:
    text = """An error occurred while calling o1.csv.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a%20b.gz.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:940)
Caused by: java.io.EOFException: Unexpected end of input stream
\tat org.apache.hadoop.io.compress.DecompressorStream.decompress(DecompressorStream.java:1)
\t... 4 more"""
    assert faults.readable(FromPy4J(text)) == (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a b.gz. "
        "EOFException: Unexpected end of input stream."
    )


def test_a_plan_is_left_out_and_a_position_kept() -> None:
    text = "[UNRESOLVED_COLUMN] `a` cannot be resolved. SQLSTATE: 42703; line 2 pos 7;\n'Project ['a]\n+- Range (0, 3, step=1)\n"
    assert faults.readable(
        FromPySpark(text, f"org.apache.spark.sql.AnalysisException: {text}\tat x.y(Z.scala:1)")
    ) == "FromPySpark: [UNRESOLVED_COLUMN] `a` cannot be resolved; line 2 pos 7.".removeprefix("FromPySpark: ")


def test_of_a_long_sql_text_the_part_around_the_caret_is_shown() -> None:
    lines = [*(f"-- line {i}" for i in range(50)), "SELECT " + "x, " * 500 + "FROM"]
    text = "\n[PARSE_SYNTAX_ERROR] Syntax error. SQLSTATE: 42601 (line 51, pos 1507)\n\n== SQL ==\n"
    said = faults.readable(FromPySpark(f"{text}{chr(10).join(lines)}\n{'-' * 1507}^^^\n", ""))
    *_, shown, caret, words = said.splitlines()
    assert shown.endswith("FROM")
    assert shown[caret.index("^") :] == "FROM"
    assert words == "[PARSE_SYNTAX_ERROR] Syntax error. (line 51, pos 1507)."
    assert len(said) < 700


def test_a_message_is_bounded() -> None:
    error = reading.failed(SOURCE, ValueError("x" * 5000))
    assert error.code == "SDDP-203"
    assert len(error.message) <= 1000
    assert error.message.startswith("path file:///data: ValueError: xxx")
    assert len(reading.unreadable(SOURCE, ValueError("x" * 5000), what="where=" + "y" * 5000).message) <= 1000


def test_an_error_without_words_is_named_by_its_kind() -> None:
    assert faults.readable(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("No space left on device", "SDDP-301"),
        ("Disk quota exceeded", "SDDP-301"),
        ("Mkdirs failed to create file:/x", "SDDP-301"),
        ("[TASK_WRITE_FAILED] Task failed while writing rows to s3a://x.", "SDDP-301"),
        ("[FAILED_READ_FILE.NO_HINT] reading file x, [TASK_WRITE_FAILED]", "SDDP-203"),
        ("ExecutorLostFailure (executor 1 exited caused by one of the running tasks)", "SDDP-308"),
        ("Job 3 cancelled because SparkContext was shut down", "SDDP-308"),
        ("java.lang.OutOfMemoryError: Java heap space", "SDDP-308"),
        ('No FileSystem for scheme "abc"', "SDDP-310"),
        ("Failed to find the data source: delta. Make sure", "SDDP-310"),
        ("something else", "SDDP-203"),
    ],
)
def test_what_is_at_fault_is_told_by_the_text(said: str, code: str) -> None:
    error = reading.failed(SOURCE, py4j(said))
    assert error.code == code
    assert "\tat " not in error.message


def test_a_cause_in_python_counts_as_well() -> None:
    try:
        try:
            raise OSError(28, "No space left on device")
        except OSError as error:
            raise RuntimeError("the writer gave up") from error
    except RuntimeError as error:
        assert reading.failed(SOURCE, error).code == "SDDP-301"


def test_an_error_of_ours_stays_what_it_is() -> None:
    ours = SparkDDPError("SDDP-204", "the column 'a' is not there.", "Correct it.")
    assert reading.failed(SOURCE, ours) is ours
    told = reading.failed(
        SOURCE,
        FromPySpark(
            "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
            f'  File "x.py", line 1, in f\nairflow_provider_sparkddp.spec.errors.SparkDDPError: {ours}\n',
            "",
        ),
    )
    assert (told.code, told.message, told.remedy) == (ours.code, ours.message, ours.remedy)
