"""What a rank does alone, in seconds and bytes: waiting for its data, its own training_step, its peak of memory."""

from __future__ import annotations

import functools
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Steps an epoch whose kernels are timed on CUDA; to time each would cost more than it tells.
SAMPLED_STEPS = 20


class Timed:
    """A loader whose iterator tells how long each batch was waited for; in all else it is the loader."""

    def __init__(self, loader: Any, waited: Callable[[float], None]) -> None:
        self._loader, self._waited = loader, waited

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self._loader)
        while True:
            started = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                return
            self._waited(time.perf_counter() - started)
            yield batch

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class Meter:
    """Seconds of this rank's own work since the training began.

    Attributes:
        data_seconds: waiting for the training loader.
        step_seconds: inside of the module's training_step, but for its first call, which loads what it needs. On CUDA that of the
            kernels, from a sample of the steps. Where the step itself waits for other ranks (synchronised batch norm, a metric that
            is logged with sync_dist at each step, shards that are gathered) it holds that too.
    """

    def __init__(self) -> None:
        self.data_seconds = self._host_seconds = 0.0
        self._calls = 0
        self._sample_every = 1
        self._events: list[tuple[Any, Any]] = []
        self._kernel_seconds, self._sampled = 0.0, 0
        self._device: Any = None

    def loader(self, loader: Any) -> Timed:
        return Timed(loader, self._waited)

    def _waited(self, seconds: float) -> None:
        self.data_seconds += seconds

    def begin(self, device: Any, steps: float) -> None:
        """Peaks of memory count from here. `steps`: of an epoch."""
        self._device = device
        self._sample_every = max(int(min(steps, 1e9)) // SAMPLED_STEPS, 1)
        if device.type == "cuda":
            import torch

            torch.cuda.reset_peak_memory_stats(device)
        try:
            Path("/proc/self/clear_refs").write_text("5")  # this process's VmHWM begins anew
        except OSError:
            return  # no Linux, or it isn't allowed: then the peak is that of the process's life

    def step(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The module's training_step, timed; Lightning looks through functools.wraps at what is overridden."""

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            if self._calls == 1:
                return function(*args, **kwargs)
            if self._device is not None and self._device.type == "cuda" and self._calls % self._sample_every == 0:
                return self._between_events(function, *args, **kwargs)
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._host_seconds += time.perf_counter() - started

        return timed

    def _between_events(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        import torch

        events: Any = torch.cuda.Event
        start, end = events(enable_timing=True), events(enable_timing=True)
        start.record()
        result = function(*args, **kwargs)
        end.record()
        self._events.append((start, end))
        return result

    @property
    def step_seconds(self) -> float:
        """On CUDA it waits for the last sampled step: ask at the end of an epoch."""
        for start, end in self._events:
            end.synchronize()
            self._kernel_seconds += start.elapsed_time(end) / 1000
            self._sampled += 1
        self._events.clear()
        if self._sampled:
            return self._kernel_seconds / self._sampled * max(self._calls - 1, 1)
        return self._host_seconds

    def memory(self) -> dict[str, int | None]:
        """Bytes: the process's peak of resident memory, and CUDA's of this process (None without)."""
        gpu = None
        if self._device is not None and self._device.type == "cuda":
            import torch

            gpu = int(torch.cuda.max_memory_allocated(self._device))
        return {"memory_bytes": peak_resident(), "gpu_memory_bytes": gpu}


def peak_resident() -> int:
    """Bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
