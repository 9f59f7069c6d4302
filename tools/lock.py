"""`make lock`: resolve constraints.txt anew, all extras together, in a fresh environment; takes several minutes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What is chosen by hand; everything else follows from these and from pyproject.toml.
CHOSEN = (
    "apache-airflow==3.3.2",
    "apache-airflow-providers-apache-spark==6.3.4",
    "pyspark==4.2.0",
    "pyspark-client==4.2.0",
    "pytorch-lightning==2.6.6",
    # Exactly: an open range would take a CUDA build of several GB.
    "torch==2.13.0",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--no-compile", *CHOSEN, "-e", f"{ROOT}[dev]"]
        subprocess.run(install, check=True)
        freeze = subprocess.run(
            [python, "-m", "pip", "freeze", "--exclude-editable"], capture_output=True, text=True, check=True
        )
    # A local version such as +cpu names one build of a release; the pin holds for every build.
    pins = sorted({line.split("+")[0] for line in freeze.stdout.splitlines() if "==" in line}, key=str.lower)
    (ROOT / "constraints.txt").write_text("\n".join(pins) + "\n")
    print(f"wrote constraints.txt: {len(pins)} packages")


if __name__ == "__main__":
    main()
