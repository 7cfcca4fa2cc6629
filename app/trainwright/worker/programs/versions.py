"""Says which Python this is, and which of the tracer's libraries it has; imports none of them."""

import json
import sys
from importlib import metadata

LIBRARIES = ("torch", "transformers", "timm", "diffusers")


def main() -> None:
    """Write the versions."""
    found = {"python": "{}.{}.{}".format(*sys.version_info[:3])}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
    print(json.dumps({"versions": found}))


if __name__ == "__main__":
    main()
