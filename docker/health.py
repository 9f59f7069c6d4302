"""Health check of a container: ask a URL, and optionally look into the JSON that it answers.

    python health.py URL [FIELD[=VALUE]]...

FIELD is a dotted path; it must equal VALUE, or without one be neither missing nor empty. Needs the standard library
only, since the images have no curl.
"""

import json
import sys
import urllib.request

TIMEOUT_S = 5.0


def look_up(document: object, path: str) -> object:
    """Return what lies at the dotted path, None where there is nothing."""
    for key in path.split("."):
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def find_problem(document: object, expectations: list[str]) -> str | None:
    """Return the first expectation that does not hold, in words."""
    for expectation in expectations:
        path, equals, value = expectation.partition("=")
        found = look_up(document, path)
        if (str(found) != value) if equals else not found:
            return f"{path} is {found!r}, expected {value or 'something'}"
    return None


def main(arguments: list[str]) -> int:
    """Return 0 for healthy, 1 for not; say why on stderr."""
    url, *expectations = arguments
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
            body = response.read()
        problem = find_problem(json.loads(body), expectations) if expectations else None
    except (OSError, ValueError) as error:
        problem = str(error)
    if problem:
        print(f"{url}: {problem}", file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
