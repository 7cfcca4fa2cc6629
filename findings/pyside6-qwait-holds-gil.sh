#!/usr/bin/env bash
# QTest.qWait stops every other Python thread for as long as it waits.
#
# Versions: PySide6 6.11.3.
# Expected: qWait lets the program go on, as QEventLoop.exec does: workers in threads proceed meanwhile.
# Seen: qWait keeps Python's global lock. A thread that counts milliseconds comes to 1 within a second of
#   qWait, and to some 900 within a second of an event loop. A test or a script that waits so for a worker
#   finds it as far as before, however long it waits, or sees it many times too slow.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q PySide6-Essentials==6.11.3

QT_QPA_PLATFORM=offscreen "$folder/venv/bin/python" - <<'PY'
import threading
import time

from PySide6.QtCore import QCoreApplication, QEventLoop, QTimer
from PySide6.QtTest import QTest

app = QCoreApplication([])
counted = 0


def count() -> None:
    global counted
    while True:
        time.sleep(0.001)
        counted += 1


def loop() -> None:
    inner = QEventLoop()
    QTimer.singleShot(1000, inner.quit)
    inner.exec()


threading.Thread(target=count, daemon=True).start()
seen = {}
for name, wait in (("QEventLoop", loop), ("qWait", lambda: QTest.qWait(1000))):
    before = counted
    wait()
    seen[name] = counted - before
    print(f"{name}: the thread came {seen[name]} steps further in a second")
assert seen["QEventLoop"] > 100
assert seen["qWait"] < 10
PY
