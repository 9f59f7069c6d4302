"""A local folder, copied to storage in the background: storage that is slow or gone neither stalls nor fails the training."""

from __future__ import annotations

import threading
import time
import warnings
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.training.lightning_names import callback
from airflow_provider_sparkddp.spec import paths

SECONDS_BETWEEN_COPIES = 30.0
# How long the end of a training, or a failure, waits for the last copy.
SECONDS_FOR_THE_LAST = 60.0


class Mirror:
    """Copies what changed below `folder` to the same names below `uri`. Never raises; the first failure is told by a warning.

    Attributes:
        failed: why a copy failed; None when all that was tried arrived.
    """

    def __init__(self, folder: Path, uri: str) -> None:
        self.folder, self.uri = folder, uri
        self.failed: str | None = None
        self._told = False
        self._copied: dict[Path, tuple[int, int]] = {}
        self._thread: threading.Thread | None = None
        self._began = time.monotonic()

    def soon(self) -> None:
        """Begin a copy, unless one is under way or was begun a moment ago."""
        if not self._busy() and time.monotonic() - self._began >= SECONDS_BETWEEN_COPIES:
            self._begin()

    def finish(self, limit: float = SECONDS_FOR_THE_LAST) -> None:
        """The last copy, for which it waits at most so many seconds."""
        until = time.monotonic() + limit
        self._wait(until)
        if not self._busy():
            self._begin()
            self._wait(until)
        if self._busy():
            self.failed = self.failed or f"{self.uri} was not written within {limit:g} s"
        self._tell()

    def arrived(self) -> set[str]:
        """The names directly below the folder that were copied, or begun."""
        return {path.relative_to(self.folder).parts[0] for path in list(self._copied)}

    def _busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _wait(self, until: float) -> None:
        if self._thread is not None:
            self._thread.join(max(0.0, until - time.monotonic()))

    def _begin(self) -> None:
        self._tell()
        self._began = time.monotonic()
        # A daemon: one that hangs doesn't keep its process.
        self._thread = threading.Thread(target=self._copy, name="sparkddp-mirror", daemon=True)
        self._thread.start()

    def _copy(self) -> None:
        for path in sorted(self.folder.rglob("*")):
            try:
                self._copy_one(path)
            except Exception as error:
                if path.exists():  # else it was a temporary one
                    self.failed = self.failed or f"{type(error).__name__}: {error}"
                    return

    def _copy_one(self, path: Path) -> None:
        facts = path.stat()
        state = (facts.st_size, facts.st_mtime_ns)
        target = paths.join(self.uri, path.relative_to(self.folder).as_posix())
        if path.is_dir():
            if path not in self._copied:
                storage.make_folder(target)  # an empty one may mean something, as it does to MLflow
        elif self._copied.get(path) != state:
            storage.put_file(path, target)
        self._copied[path] = state

    def _tell(self) -> None:
        if self.failed and not self._told:
            self._told = True
            warnings.warn(f"logs are not all copied to storage: {self.failed}", stacklevel=2)


class _CopiedAtEpochs:
    """The callback's body."""

    def __init__(self, mirror: Mirror) -> None:
        super().__init__()
        self.mirror = mirror

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        self.mirror.soon()


def copied_at_epochs(package: str, mirror: Mirror) -> Any:
    """A Callback of the given Trainer's package."""
    return callback(package, _CopiedAtEpochs, mirror)
