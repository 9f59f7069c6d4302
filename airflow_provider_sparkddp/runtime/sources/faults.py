"""What Spark's exceptions say: for a person, without Java's stack, and to tell a fault of the source from one of storage.

Everything here reads text. An exception of Spark holds its causes as the lines `Caused by: class: message` of one long trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from airflow_provider_sparkddp.spec.errors import CODES, SparkDDPError

# Most characters of a message that Spark's words take: more is not read.
LIMIT = 900
# Of an SQL text, so many lines before the caret, and so many characters around it.
SQL_LINES, SQL_WIDTH = 3, 120

CAUSE = "Caused by: "
FRAME = re.compile(r"\s+(at [^\s(]+\(.*\)|\.\.\. \d+ (more|common frames omitted))$")
CLASS = re.compile(r"((?:[\w$]+\.)+)?([A-Z][\w$]*)(?:: (.*)|$)", re.DOTALL)
URI = re.compile(r"\b[a-z][a-z0-9+.-]*:/[^\s,'\"\]]+")
TOLD = re.compile(r"SparkDDPError: \[(SDDP-\d{3})\] (.*?) What to do: ([^\n]*)", re.DOTALL)
# What is said around the point: where a task ran, a code of the SQL standard, the analyzed plan below a message.
NOISE = (
    (
        re.compile(r"^Job aborted due to stage failure: .*?\(TID \d+\) \([^)]*\): ((?:[\w$]+\.)+[\w$]+: )?", re.DOTALL),
        "",
    ),
    (re.compile(r"\s*Driver stacktrace:\s*$"), ""),
    (re.compile(r"\s*SQLSTATE: \w{5}"), ""),
    (re.compile(r"\.?(; line \d+ pos \d+);\n.*", re.DOTALL), r"\1"),
    (re.compile(r";\n['!]?\w.*\n[ :]*\+- .*", re.DOTALL), ""),
    (re.compile(r"\s*Parse Mode: FAILFAST\. To process .*?'PERMISSIVE'\."), ""),
)

READING = re.compile(r"FAILED_READ_FILE|MALFORMED_RECORD_IN_PARSING|from the Python worker")
FULL = re.compile(r"No space left on device|[Qq]uota ?[Ee]xceeded|quota exceeded|not enough space on the disk")
WRITING = re.compile(
    r"TASK_WRITE_FAILED|Mkdirs failed|ParentNotDirectoryException|FileAlreadyExistsException|Read-only file system"
)
LOST = re.compile(
    r"ExecutorLostFailure|SparkContext was shut down|stopped SparkContext|SparkContext has been shutdown|OutOfMemoryError"
    r"|FetchFailed|MetadataFetchFailedException|cancelled job group|Py4JNetworkError|Answer from Java side is empty"
)
NO_PROVIDER = re.compile(r"Failed to find (?:the )?data source: ([^\s.]+)|ClassNotFoundException: (\w+)\.DefaultSource")
NO_SCHEME = re.compile(r'No FileSystem for scheme "(\w+)"|hadoop\.fs\.(\w+)\.\w+ not found')
DOUBLED = re.compile(r"COLUMN_ALREADY_EXISTS")
NO_FILES = re.compile(r"UNABLE_TO_INFER_SCHEMA")

# format -> Maven coordinates for Spark {spark} ({minor} of it), and what else Spark must be told.
PACKAGES = {
    "avro": ("org.apache.spark:spark-avro_2.13:{spark}", ""),
    "delta": (
        "io.delta:delta-spark_{minor}_2.13:<version of Delta>",
        " Delta also wants conf={{'spark.sql.extensions': 'io.delta.sql.DeltaSparkSessionExtension', "
        "'spark.sql.catalog.spark_catalog': 'org.apache.spark.sql.delta.catalog.DeltaCatalog'}}.",
    ),
    "iceberg": (
        "org.apache.iceberg:iceberg-spark-runtime-{minor}_2.13:<version of Iceberg>",
        " See whether Iceberg has one for Spark {minor} yet.",
    ),
}
# scheme of a storage -> Maven coordinates
CONNECTORS = {
    "s3a": "org.apache.hadoop:hadoop-aws:<version of Spark's Hadoop>",
    "abfss": "org.apache.hadoop:hadoop-azure:<version of Spark's Hadoop>",
    "azurebfs": "org.apache.hadoop:hadoop-azure:<version of Spark's Hadoop>",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:<version>",
}


@dataclass(frozen=True)
class Head:
    """An exception of a chain: its class without the package, and what it says."""

    kind: str
    text: str


def heads(error: BaseException) -> list[Head]:
    """The exception and its causes, outermost first, each message once."""
    found: list[Head] = []
    for kind, text in _chain(error):
        said = clean(text)
        if said and not any(said in head.text for head in found):
            found.append(Head(kind, said))
    return found


def whole(error: BaseException) -> str:
    """Everything that the exception and its causes hold, to be searched."""
    return "\n".join(f"{type(each).__name__}: {each}\n{_trace(each)}" for each in _python_chain(error))


def readable(error: BaseException, limit: int = LIMIT) -> str:
    """What it says, in one line but for a part of an SQL text with its caret; at most `limit` characters."""
    parts: list[str] = []
    for head in heads(error):
        known = head.text.startswith(("[", "\n")) or head.kind in (
            "AnalysisException",
            "ParseException",
            "SparkException",
        )
        parts.append(head.text if known else f"{head.kind}: {head.text}")
    text = " ".join(part if part.endswith(".") else f"{part}." for part in parts) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _python_chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__


def _trace(error: BaseException) -> str:
    """The Java trace of an exception that PySpark has already turned into its own."""
    return str(getattr(error, "_stackTrace", None) or "")


def _chain(error: BaseException) -> Iterator[tuple[str, str]]:
    """(class, message) of each exception, with the traces of its own left out."""
    for each in _python_chain(error):
        if hasattr(each, "java_exception"):  # Py4J's, whose text is a first line of its own and then Java's whole trace
            yield from _java(str(each).partition("\n: ")[2])
            continue
        yield type(each).__name__, str(each)
        _, cause, rest = _trace(each).partition(f"\n{CAUSE}")
        yield from _java(rest) if cause else ()


def _java(trace: str) -> Iterator[tuple[str, str]]:
    """(class, message) of a Java trace; what was suppressed meanwhile, and the frames, are left out."""
    lines: list[str] = []
    suppressed = False
    for line in trace.splitlines():
        suppressed = line.startswith("\tSuppressed: ") or (suppressed and line.startswith("\t"))
        if line.startswith(CAUSE):
            yield _headline(lines)
            lines = [line.removeprefix(CAUSE)]
        elif not suppressed and not FRAME.match(line):
            lines.append(line)
    yield _headline(lines)


def _headline(lines: list[str]) -> tuple[str, str]:
    text = "\n".join(lines).strip()
    found = CLASS.match(text)
    return (found[2], found[3] or "") if found else ("", text)


def clean(text: str) -> str:
    """Without what is said around the point, in one line but for an SQL text; paths as they are, not percent-encoded."""
    if "Traceback (most recent call last):" in text:
        text = _python_last_line(text)
    for noise, instead in NOISE:
        text = noise.sub(instead, text)
    words, mark, sql = text.partition("\n== SQL")
    said = URI.sub(lambda uri: unquote(uri[0]), " ".join(words.split()))
    # The words last: what follows them begins no line of its own.
    return f"\n{_around_the_caret(mark.strip() + sql)}\n{said}" if mark else said


def _python_last_line(text: str) -> str:
    """What was raised in a Python worker, without the trace that leads there."""
    lines = text.strip().splitlines()
    last = max((at for at, line in enumerate(lines) if line.startswith("  ")), default=-1)
    return "\n".join(lines[last + 1 :]) or lines[-1]


def _around_the_caret(block: str) -> str:
    lines = [line for line in block.strip("\n").splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if line.strip() and set(line) <= set("-^ ") and "^" in line), None)
    if at is None:
        return "\n".join(line[:SQL_WIDTH] for line in lines[: SQL_LINES + 1])
    start = max(0, lines[at].index("^") - SQL_WIDTH + 20)
    shown = [*lines[max(1, at - SQL_LINES) : at], lines[at]]
    return "\n".join([lines[0], *(line[start : start + SQL_WIDTH] for line in shown)])


def told(error: BaseException) -> SparkDDPError | None:
    """An error of this provider that was raised on an executor, and came here as text."""
    found = TOLD.search(whole(error))
    if not found or found[1] not in CODES:
        return None
    return SparkDDPError(found[1], found[2].removeprefix(f"{CODES[found[1]].title}: "), found[3].strip())


def lacking(error: BaseException) -> SparkDDPError | None:
    """As SDDP-310, when Spark has no jar for a format or for a storage's scheme."""
    text = whole(error)
    provider, scheme = NO_PROVIDER.search(text), NO_SCHEME.search(text)
    if provider:
        return _no_provider(provider[1] or provider[2])
    if scheme:
        name = scheme[1] or scheme[2]
        package = CONNECTORS.get(name)
        given = f"packages='{package}' to the operator" if package else "the jar to the operator by packages or jars"
        return SparkDDPError("SDDP-310", f"Spark has no jar for the storage {name}://.", f"Give {given}.")
    return None


def _no_provider(name: str) -> SparkDDPError:
    import pyspark

    version = {"spark": pyspark.__version__, "minor": ".".join(pyspark.__version__.split(".")[:2])}
    package, besides = (part.format(**version) for part in PACKAGES.get(name.lower(), ("", "")))
    message = f"Spark {pyspark.__version__} knows no format {name!r}."
    if not package:
        return SparkDDPError(
            "SDDP-310", message, "Correct the name, or give its jar to the operator by packages or jars."
        )
    return SparkDDPError("SDDP-310", message, f"Give packages='{package}' to the operator.{besides}")


def of_storage(error: BaseException) -> SparkDDPError | None:
    """As SDDP-301, when what was to be written could not be: the storage is full, or refuses."""
    text = whole(error)
    if FULL.search(text):
        return SparkDDPError(
            "SDDP-301",
            f"Spark ran out of space. {readable(error)}",
            "Free space there, or use storage with more of it: run_dir for what is written, conf={'spark.local.dir': …} for "
            "what Spark keeps meanwhile.",
        )
    if WRITING.search(text) and not READING.search(text):
        return SparkDDPError(
            "SDDP-301",
            f"Spark could not write. {readable(error)}",
            "Check that the folder exists on every host, its owner and rights, and the space that is left.",
        )
    return None


def of_cluster(error: BaseException) -> SparkDDPError | None:
    """As SDDP-308, when Spark itself ended or lost what it needed: no fault of the source."""
    if not LOST.search(whole(error)):
        return None
    return SparkDDPError(
        "SDDP-308",
        readable(error),
        "Airflow's retries apply. If it comes again: give executors and driver more memory, and look at lost executors in "
        "Spark's UI.",
    )
