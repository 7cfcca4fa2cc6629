"""Install the system packages that Qt needs, or name them in one line to paste.

``--for window`` asks for what the display server here needs, ``--for tests`` for what tests
without a display need, a Korean font among it.
"""

import argparse
import os
import shutil
import subprocess
import sys

from trainwright.cli import qt_libraries

KOREAN_FONT = "fonts-noto-cjk"


def main() -> int:
    """Return 0 where nothing is missing or all of it could be installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--for", dest="purpose", choices=("window", "tests"), required=True)
    purpose = parser.parse_args().purpose
    if not sys.platform.startswith("linux"):
        return 0
    libraries = qt_libraries.missing({} if purpose == "tests" else None)
    packages = list(qt_libraries.packages(libraries))
    if not has_korean_font():
        packages.append(KOREAN_FONT)
    if unknown := [name for name in libraries if name not in qt_libraries.PACKAGES]:
        sys.stderr.write(f"Qt needs libraries that are missing: {', '.join(unknown)}\n")
    if not packages:
        return 1 if unknown else 0
    if installed(packages):
        return 0
    sys.stderr.write(f"System packages are missing; run: {install_line(packages)}\n")
    return 1 if libraries else 0  # a missing font is said, and stops nobody


def has_korean_font() -> bool:
    """Return whether fontconfig knows a font for Korean."""
    program = shutil.which("fc-list")
    if program is None:
        return any(os.path.isdir(f"/usr/share/fonts/{name}") for name in _FONT_FOLDERS)
    fonts = subprocess.run([program, ":lang=ko"], capture_output=True, text=True, check=False)
    return bool(fonts.stdout.strip())


_FONT_FOLDERS = ("opentype/noto", "truetype/nanum", "google-noto-cjk", "noto-cjk")


def install_line(packages: list[str]) -> str:
    return f"sudo apt-get update && sudo apt-get install -y {' '.join(packages)}"


def installed(packages: list[str]) -> bool:
    """Install with apt-get where that is possible, and return whether it worked."""
    apt = shutil.which("apt-get")
    if apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    sys.stdout.write(f"Installing {' '.join(packages)}\n")
    sys.stdout.flush()
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    quiet = [apt, "-qq", "-o", "Dpkg::Use-Pty=0"]
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        if subprocess.run([*quiet, *command], env=environment, check=False).returncode:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
