"""Prepare Airflow before its services start: migrate the database, write the password file of the user "admin".

Without that file the simple auth manager would make up a password and print it into the log.
"""

import json
import os
import subprocess
import sys
from pathlib import Path


def write_passwords(path: Path, passwords: dict[str, str]) -> None:
    """Write the file that the simple auth manager reads, for its owner only from the first byte on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(json.dumps(passwords) + "\n")


def main() -> int:
    """Return the exit status of the migration, so that the services behind it wait in vain if it fails."""
    migration = subprocess.run(["airflow", "db", "migrate"], check=False)
    if migration.returncode == 0:
        target = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
        write_passwords(target, {"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]})
    return migration.returncode


if __name__ == "__main__":
    sys.exit(main())
