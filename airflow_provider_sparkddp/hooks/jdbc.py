"""From an Airflow connection to what a JDBC driver needs. Asked for when the task runs, and kept from everything written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import AddressValueError, IPv6Address
from typing import Any
from urllib.parse import quote, unquote, urlencode

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from airflow_provider_sparkddp.spec.databases import driver_of, kind_of
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.secrets import SECRET

# A whole URL in the extra, for every type of connection.
URL = "jdbc_url"
# The second is how Airflow's JDBC connections used to name it.
DRIVER = ("driver_class", "extra__jdbc__drv_clsname")
_PASSWORD = re.compile(r"(pwd|pass|passphrase|passcode)$", re.IGNORECASE)
_PARAMETER = re.compile(r"[?&;,(]\s*([\w.-]+)\s*=")
# user:password@ after the slashes, or Oracle's user/password@.
_IN_FRONT = re.compile(r"//[^/?;]*:[^/?;]+@|^jdbc:oracle:[^@(]*/[^@]+@", re.IGNORECASE)
_HOST = re.compile(r"[\w.,:\[\]\\-]+")
# What speaks of encryption must not get lost on the way.
_ENCRYPTION = re.compile(r"(ssl|tls|encrypt|trust_?server)", re.IGNORECASE)
_POSTGRES_SSL = ("sslmode", "sslrootcert", "sslcert", "sslkey")
_MSSQL_SSL = ("encrypt", "trustServerCertificate")


def jdbc_secrets(conn_id: str) -> dict[str, str]:
    """`url`, `user`, `password` and `driver` (the class) of a connection, without those that it does not tell.

    Raises:
        SparkDDPError: SDDP-112 when there is no such connection, no URL can be made of it, no driver class is known for
            it, or a password stands elsewhere than in its password.
    """
    connection = _connection(conn_id)
    extra = connection.extra_dejson or {}
    url = _url(connection, extra)
    _refuse_passwords(conn_id, url, extra)
    driver = next((extra[key] for key in DRIVER if extra.get(key)), None) or driver_of(url)
    _require_usable(conn_id, url, driver)
    found = {"url": url, "user": connection.login, "password": connection.password, "driver": driver}
    return {name: str(value) for name, value in found.items() if value}


def _connection(conn_id: str) -> Any:
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise _refused(
            conn_id,
            "is not defined.",
            f"Add it: airflow connections add {conn_id} --conn-type generic --conn-login … --conn-extra "
            f'\'{{"{URL}": "jdbc:postgresql://host:5432/database"}}\', and its password.',
        ) from error


def _refused(conn_id: str, found: str, remedy: str) -> SparkDDPError:
    return SparkDDPError("SDDP-112", f"the connection jdbc_conn_id={conn_id!r} {found}", remedy)


def _url(connection: Any, extra: Mapping[str, Any]) -> str:
    """The connection's own URL, or one made of its parts. Raises SparkDDPError SDDP-112."""
    kind, conn_id = str(connection.conn_type), connection.conn_id
    own = extra.get(URL) or (connection.host if kind == "jdbc" else None)
    if own:
        if not kind_of(str(own)):
            raise _refused(
                conn_id,
                f"has no JDBC URL in its {URL if extra.get(URL) else 'host'}.",
                "Write the whole URL there, such as jdbc:postgresql://host:5432/database.",
            )
        return str(own)
    if kind not in URLS and kind != "jdbc":
        raise _refused(
            conn_id,
            f"is of type {kind!r}, for which no URL is known.",
            f"Set {URL} in its extra, or give a connection of type jdbc, {', '.join(URLS)} (Airflow's command line stores a type "
            "whose provider is not installed as generic).",
        )
    if not connection.host:
        raise _refused(conn_id, "has no host.", f"Set its host, or {URL} in its extra.")
    if not _HOST.fullmatch(connection.host):
        raise _refused(
            conn_id,
            f"is of type {kind!r}, and its host is more than the name of a host.",
            f"Set host, port and schema apart, or the whole URL as {URL} in its extra.",
        )
    return URLS[kind](connection, extra)


def _place(connection: Any) -> str:
    try:
        host = f"[{IPv6Address(connection.host)}]"
    except AddressValueError:
        host = connection.host
    return f"{host}:{connection.port}" if connection.port else host


def _encryption(connection: Any, extra: Mapping[str, Any], carried: tuple[str, ...] = ()) -> dict[str, Any]:
    """The extra's settings of encryption. Raises SparkDDPError SDDP-112 for one that can't be put into a URL."""
    for key in extra:
        if _ENCRYPTION.match(key) and key not in carried:
            raise _refused(
                connection.conn_id,
                f"has {key!r} in its extra, which can't be translated for JDBC.",
                f"Write the whole URL as {URL} in its extra, with the encryption that the driver is to use.",
            )
    return {key: extra[key] for key in carried if key in extra}


def _postgres(connection: Any, extra: Mapping[str, Any]) -> str:
    encryption = _encryption(connection, extra, _POSTGRES_SSL)
    parameters = f"?{urlencode(encryption)}" if encryption else ""
    return f"jdbc:postgresql://{_place(connection)}/{quote(connection.schema or '', safe='')}{parameters}"


def _mysql(connection: Any, extra: Mapping[str, Any]) -> str:
    _encryption(connection, extra)
    return f"jdbc:mysql://{_place(connection)}/{quote(connection.schema or '', safe='')}"


def _mssql(connection: Any, extra: Mapping[str, Any]) -> str:
    parameters = {"databaseName": connection.schema, **_encryption(connection, extra, _MSSQL_SSL)}
    # In braces a value may hold everything.
    told = [f";{key}={{{_text(value).replace('}', '}}')}}}" for key, value in parameters.items() if value is not None]
    return f"jdbc:sqlserver://{_place(connection)}{''.join(told)}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _oracle(connection: Any, extra: Mapping[str, Any]) -> str:
    _encryption(connection, extra)
    sid, service = extra.get("sid"), extra.get("service_name") or connection.schema
    name = str(sid or service or "")
    if not re.fullmatch(r"[\w.$#-]+", name):
        raise _refused(
            connection.conn_id,
            "names no database by service_name or sid in its extra, or by its schema.",
            f"Set one of them, or the whole URL as {URL} in its extra.",
        )
    if sid:
        return f"jdbc:oracle:thin:@{_place(connection)}{'' if connection.port else ':1521'}:{name}"
    return f"jdbc:oracle:thin:@//{_place(connection)}/{name}"


# connection type -> the URL of its parts
URLS: dict[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "postgres": _postgres,
    "mysql": _mysql,
    "mssql": _mssql,
    "oracle": _oracle,
}


def _refuse_passwords(conn_id: str, url: str, extra: Mapping[str, Any]) -> None:
    """Raises SparkDDPError SDDP-112 naming the place, never the value: drivers and Spark show URLs in errors and plans."""
    names = [*_PARAMETER.findall(unquote(url)), *_names(extra)]
    found = [repr(name) for name in names if SECRET.search(name) or _PASSWORD.search(name)]
    if _IN_FRONT.search(url):
        found.append("user and password before the host")
    if found:
        raise _refused(
            conn_id,
            f"holds {', '.join(found)} in its URL or extra.",
            "Move it to the connection's own login and password: they are given to the driver apart from the URL.",
        )


def _names(value: Any) -> Iterator[str]:
    for key, inner in value.items() if isinstance(value, Mapping) else ():
        yield str(key)
        yield from _names(inner)


def _require_usable(conn_id: str, url: str, driver: str | None) -> None:
    if kind_of(url) == "mariadb":
        raise _refused(
            conn_id,
            "has a URL of jdbc:mariadb:, and Spark would quote its columns so that MariaDB gives their names as values.",
            "Write jdbc:mysql://…?permitMysqlScheme as jdbc_url, and driver_class org.mariadb.jdbc.Driver, in its extra.",
        )
    if not driver:
        raise _refused(
            conn_id,
            f"has a URL of jdbc:{kind_of(url)}:, of which no driver class is known.",
            "Set driver_class in its extra, and give the driver's jar by packages= or jars=.",
        )
