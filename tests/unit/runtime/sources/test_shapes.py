"""Columns of single files: names of types, headers of CSV."""

from __future__ import annotations

import gzip
import io

import pyarrow as pa
import pytest

from airflow_provider_sparkddp.runtime.sources import shapes


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.int8(), "tinyint"),
        (pa.int64(), "bigint"),
        (pa.uint32(), "bigint"),
        (pa.float32(), "float"),
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.date32(), "date"),
        (pa.decimal128(10, 2), "decimal(10,2)"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("ms", "UTC"), "timestamp"),
        (pa.timestamp("ns"), "timestamp"),
        (pa.large_list(pa.float64()), "array<double>"),
        (pa.list_(pa.float64(), 3), "array<double>"),
        (pa.map_(pa.string(), pa.int32()), "map<string,int>"),
        (pa.struct([("x", pa.list_(pa.timestamp("ns")))]), "struct<x:array<timestamp>>"),
    ],
)
def test_types_are_named_as_spark_names_them(kind: pa.DataType, name: str) -> None:
    assert shapes.type_name(kind) == name


@pytest.mark.parametrize(
    ("content", "options", "names"),
    [
        (b"id,x\n1,2\n", {}, ["id", "x"]),
        (b"\xef\xbb\xbfid,x\r\n", {}, ["id", "x"]),
        ("größe;x\n".encode("latin-1"), {"sep": ";", "encoding": "ISO-8859-1"}, ["größe", "x"]),
        ("id,größe\n".encode("utf-16"), {"charset": "UTF-16"}, ["id", "größe"]),
        (b'\n \n#a,b\n"a,b",x \n', {"comment": "#"}, ["a,b", "x "]),
        (b"a||b\n", {"sep": "||"}, ["a", "b"]),
        (b"a\tb", {"delimiter": "\\t"}, ["a", "b"]),
        (b"'a,b',c\n", {"quote": "'"}, ["a,b", "c"]),
        (b'"a,b\n', {"quote": ""}, ['"a', "b"]),
        (b"", {}, []),
    ],
)
def test_a_header_is_read_as_spark_reads_it(content: bytes, options: dict[str, str], names: list[str]) -> None:
    assert [name for name, _ in shapes.header(io.BytesIO(content), "x.csv", options)] == names
    packed = io.BytesIO(gzip.compress(content))
    assert [name for name, _ in shapes.header(packed, "x.csv.gz", options)] == names


@pytest.mark.parametrize(("uri", "options"), [("x.csv.snappy", {}), ("x.csv", {"linesep": ";"})])
def test_what_only_spark_can_open_is_left_to_it(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="only Spark"):
        shapes.header(io.BytesIO(b"id,x\n"), uri, options)


def test_a_path_of_one_file_is_no_pattern() -> None:
    assert shapes.plain_path("file:///a%20b/%5B1%5D*.csv") == "file:///a b/\\[1\\]\\*.csv"
