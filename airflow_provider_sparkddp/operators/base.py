"""The only execute and on_kill: from an operator's arguments to a job, and from its result to XCom."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow import __version__ as AIRFLOW_VERSION
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.openlineage.utils.spark import (
    inject_parent_job_information_into_spark_properties,
    inject_transport_information_into_spark_properties,
)
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, BaseOperator, conf

from airflow_provider_sparkddp.hooks import archives as packed
from airflow_provider_sparkddp.hooks import bundle, plan
from airflow_provider_sparkddp.hooks.sparkddp import SparkDDPHook
from airflow_provider_sparkddp.hooks.submitters.base import Submitter
from airflow_provider_sparkddp.hooks.submitters.process import Process
from airflow_provider_sparkddp.hooks.submitters.spark_submit import (
    SparkSubmit,
    launcher,
    require_client_mode,
    require_connection,
)
from airflow_provider_sparkddp.operators.events import tell_assets
from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import CodeRef
from airflow_provider_sparkddp.spec.references import model_ref


def known(value: Any) -> Any:
    """The value as it can be checked while the DAG is parsed: templates and other tasks' outputs become UNKNOWN."""
    if hasattr(value, "iter_references"):
        return UNKNOWN
    if isinstance(value, str):
        return UNKNOWN if "{{" in value or "{%" in value else value
    if isinstance(value, Mapping):
        return {key: known(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        items = [known(inner) for inner in value]
        return UNKNOWN if UNKNOWN in items else items
    return value


class SparkDDPBase:
    """What the four operators share. Mixed in before an operator class of Airflow's.

    Attributes:
        kind: the job's kind, a key of `jobs.ARGUMENTS`.
    """

    kind: str
    py_files: Any
    log: Any
    outlets: Any
    _job_hook: SparkDDPHook | None = None

    def check_known(self) -> None:
        """The check at parse time: a wrong DAG shows as an import error, with the same words as at run time."""
        plan.require_airflow(AIRFLOW_VERSION)
        jobs.check(self.kind, {name: known(getattr(self, name)) for name in self._declared()})
        convert("py_files", known(self.py_files) or [], "names")

    def _declared(self) -> list[str]:
        return [name for name in jobs.ARGUMENTS[self.kind] if hasattr(self, name)]

    def execute(self, context: Any) -> dict[str, Any]:
        """Run the job; its values are the XCom.

        Raises:
            AirflowFailException: what a retry can't mend. AirflowException: what it may. Both carry code, reason and remedy.
        """
        try:
            return self._execute(context)
        except SparkDDPError as error:
            # From None: the story is told by the message; the log holds the rank's own traceback.
            raise (AirflowException if error.retry else AirflowFailException)(str(error)) from None

    def _execute(self, context: Any) -> dict[str, Any]:
        settings = jobs.check(self.kind, {name: getattr(self, name) for name in self._declared()})
        settings, carried = self.settings(settings)
        secrets = self.secrets(settings)
        task = _task(context)
        run_dir = plan.run_dir(settings, storage_root(), task)
        provider = bundle.provider_zip()
        py_files = convert("py_files", self.py_files or [], "names")
        users = bundle.user_zips(py_files, Path(context["dag"].fileloc).parent)
        code = tuple(bundle.store(run_dir, made) for made in [provider, *users])
        code += tuple(ref for ref in carried if ref not in code)
        job = plan.plan_job(self.kind, settings, task, run_dir, uuid.uuid4().hex[:12], code)
        self._job_hook = SparkDDPHook()
        result = self._job_hook.run(
            job, provider, lambda zip_path: self.submitter(zip_path, settings, context), secrets
        )
        tell_assets(self.kind, result.values, self.outlets, context)
        return {**result.values, **self.passed_on(settings, code[1:], result.values)}

    def settings(self, checked: dict[str, Any]) -> tuple[dict[str, Any], tuple[CodeRef, ...]]:
        """The job's settings from the checked arguments, and code that an earlier task of the line brought."""
        raise NotImplementedError

    def secrets(self, settings: Mapping[str, Any]) -> dict[str, str]:
        """What the job needs and nobody may see; it travels apart from the settings."""
        return {}

    def submitter(self, provider_zip: str, settings: Mapping[str, Any], context: Any) -> Submitter:
        """The way in which this operator runs its job."""
        raise NotImplementedError

    def passed_on(
        self, settings: Mapping[str, Any], code: Sequence[CodeRef], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What is added to the XCom for the next task of the line."""
        return {}

    def on_kill(self) -> None:
        if self._job_hook:
            self._job_hook.cancel()


def _task(context: Any) -> plan.Task:
    ti = context["ti"]
    map_index = ti.map_index if ti.map_index is not None else -1
    return plan.Task(ti.dag_id, ti.task_id, ti.run_id, map_index, ti.try_number or 1)


def storage_root(otherwise: str | None = None) -> str:
    """`[sparkddp] storage_root`; where it isn't configured what is given, or a folder in Airflow's home."""
    configured = conf.get("sparkddp", "storage_root", fallback="") or otherwise
    if configured:
        return str(configured)
    from airflow.configuration import AIRFLOW_HOME

    return (Path(AIRFLOW_HOME) / "sparkddp").absolute().as_uri()


class OnSpark(SparkDDPBase, SparkSubmitOperator):
    """An operator whose job runs on Spark: SparkSubmitOperator's arguments, without application and java_class.

    Args:
        py_files: files, zips, pure Python wheels and folders of Python code. A folder with `__init__.py` is imported by its own
            name; of another the contents go on the path. Relative ones lie beside the DAG file. (templated)
        archives: packed environments, `"environment.tar.gz#environment"` or a list of such: executors unpack them, and run the
            interpreter in one that holds `bin/python`. Relative ones lie beside the DAG file. (templated)
    """

    # SparkSubmitOperator's, which has no types.
    conf: Any
    env_vars: Any
    _spark_binary: Any
    _conn_id: str

    template_fields: Sequence[str] = (
        *(field for field in SparkSubmitOperator.template_fields if not field.startswith("application")),
        "archives",
    )

    def __init__(
        self, *, py_files: Sequence[str] | None = None, archives: str | Sequence[str] | None = None, **kwargs: Any
    ) -> None:
        for name in kwargs:
            if name.startswith("application") or name == "java_class":
                raise SparkDDPError(
                    "SDDP-101", f"{name} is set; the operator decides what is submitted.", f"Leave {name} out."
                )
        super().__init__(**kwargs)
        self.py_files = py_files
        self.archives = archives
        packed.entries(known(archives))
        require_client_mode(self._deploy_mode)
        plan.check_conf(convert("conf", known(self.conf) or {}, "dict"))

    def submitter(self, provider_zip: str, settings: Mapping[str, Any], context: Any) -> Submitter:
        connection = require_connection(self._conn_id)
        require_client_mode(self._deploy_mode or connection.extra_dejson.get("deploy-mode"))
        binary, variables = launcher(self._spark_binary or connection.extra_dejson.get("spark-binary"))
        variables |= {str(key): str(value) for key, value in (self.env_vars or {}).items()}
        master = f"{connection.conn_type}://{connection.host or ''}"
        given = convert("conf", self.conf or {}, "dict")
        properties = plan.spark_conf(self.kind, settings, given, str(connection.host or ""), sys.executable)
        properties |= plan.variables_conf(master, self.env_vars or {})
        archives = packed.located(packed.entries(self.archives), Path(context["dag"].fileloc).parent)
        properties |= packed.settings(archives, str(connection.host or ""), given, self.env_vars or {})
        if self._openlineage_inject_parent_job_info:
            properties = inject_parent_job_information_into_spark_properties(properties, context)
        if self._openlineage_inject_transport_info:
            properties = inject_transport_information_into_spark_properties(properties, context)

        def make_hook(application_args: list[str]) -> Any:
            self.conf, self.application_args, self.py_files = properties, application_args, provider_zip
            self._archives = ",".join(archive.uri for archive in archives) or None
            # The provider's hook would add all of Airflow's environment to them.
            self._spark_binary, self.env_vars = binary, None
            return self._get_hook()

        return SparkSubmit(make_hook, variables)

    def on_kill(self) -> None:
        # Not SparkSubmitOperator's, which asks for a hook of its own.
        SparkDDPBase.on_kill(self)


class InProcess(SparkDDPBase, BaseOperator):
    """An operator whose job runs in a process of its own on the Airflow worker.

    Args:
        python: interpreter to run it with, holding the `[cluster]` extra; default Airflow's own. (templated)
    """

    python: str | None

    def __init__(self, **kwargs: Any) -> None:
        # Its own, though it adds nothing: for a class without one, `.partial()` takes BaseOperator's None for inlets, and the
        # mapped task can't start.
        super().__init__(**kwargs)

    def submitter(self, provider_zip: str, settings: Mapping[str, Any], context: Any) -> Submitter:
        return Process(self.python, provider_zip, lambda line: self.log.info("%s", line))

    def with_model(self, checked: dict[str, Any]) -> tuple[dict[str, Any], tuple[CodeRef, ...]]:
        """The arguments with the model's place, the modules that are trusted for it, and the code that came with it."""
        ref = model_ref(checked["model"], "model")
        trusted = list(dict.fromkeys([*(checked["trusted_modules"] or []), *ref.trusted_modules]))
        return {**checked, "model": ref.uri, "trusted_modules": trusted}, ref.code
