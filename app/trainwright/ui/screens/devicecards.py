"""Cards of the live screen: one for each GPU, one for the computer around them."""

from PySide6.QtCore import Qt

from trainwright.messages import Message
from trainwright.probe.monitor.events import is_lost
from trainwright.probe.monitor.figures import MISSING, formed, pair
from trainwright.probe.monitor.history import Course
from trainwright.probe.monitor.readings import HOST, Series
from trainwright.probe.reading import Missing
from trainwright.probe.sample import SLOWING, GpuProcess, GpuSample, HostSample, SliceSample
from trainwright.ui import tokens
from trainwright.ui.charts.timeline import draw_spark
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Painted

COLOURS = ("weights", "input", "act", "optim", "work", "head", "data", "grad")
"""Of the GPUs, in their order."""
_PAD = 16
_LINE = 22
_HEAD = 170
"""Height of a GPU's card without slices and processes."""
_PROCESSES = 3

Courses = dict[Series, Course | None]


def colour_of(index: int) -> str:
    """Return the colour of a GPU's lines."""
    return COLOURS[index % len(COLOURS)]


class GpuCard(Painted):
    """Busy, memory, temperature, power and clocks of a GPU; its slices and processes."""

    def __init__(self, index: int) -> None:
        super().__init__(f"GPU {index}", height=_HEAD)
        self._gpu = GpuSample(index)
        self._courses: Courses = {}

    def show_sample(self, gpu: GpuSample, courses: Courses) -> None:
        """Show a sample, with the last minute of its readings."""
        self._gpu, self._courses = gpu, courses
        more = len(gpu.slices) + min(len(_listed(gpu)), _PROCESSES)
        self.setFixedHeight(_HEAD + (_LINE * more + tokens.S if more else 0))
        self.setAccessibleDescription(_spoken(gpu))
        self.setToolTip(plain_tip("" if isinstance(gpu.name, Missing) else gpu.name))
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        gpu, ink = self._gpu, colour_of(self._gpu.index)
        d.box(0, 0, w, h, "surface", "line", radius=tokens.CARD)
        d.swatch(_PAD, 17, ink)
        used = d.write(_PAD + 18, 11, 80, 22, f"GPU {gpu.index}", px=tokens.SECTION, weight=600)
        warm = _text(gpu.temperature_c, "celsius")
        d.write(w - _PAD - 60, 11, 60, 22, warm, weight=500, align="right")
        if not isinstance(gpu.name, Missing):
            room = w - 2 * _PAD - used - 18 - 68
            name = _elided(gpu.name, room, tokens.LABEL)
            d.write(_PAD + used + 28, 11, room, 22, name, px=tokens.LABEL, colour="text2")
        if is_lost(gpu):
            self._draw_lost(d, w)
            return
        self._draw_busy(d, w, ink)
        room = w - 2 * _PAD - tokens.M
        left = 0.56 * room  # gibibytes are longer than watts
        memory, power = tr("ui.monitor.memory"), tr("ui.monitor.power")
        self._draw_bar(d, _PAD, left, memory, gpu.memory_used, gpu.memory_total, "bytes", ink)
        self._draw_bar(
            d, _PAD + left + tokens.M, room - left, power,
            gpu.power_w, gpu.power_limit_w, "watts", ink,
        )  # fmt: skip
        self._draw_foot(d, w)
        y = _HEAD - 2.0
        for each in gpu.slices:
            _draw_slice(d, each, y, w, ink)
            y += _LINE
        for process in _listed(gpu)[:_PROCESSES]:
            _draw_process(d, process, y, w)
            y += _LINE

    def _draw_lost(self, d: Drawing, w: int) -> None:
        d.icon("x-circle-fill", _PAD, 47, 20, "noFill")
        reason = self._gpu.memory_used
        text = say(reason.reason) if isinstance(reason, Missing) else ""
        for number, line in enumerate(tokens.wrapped(text, w - 2 * _PAD - 30, tokens.BODY)):
            d.write(_PAD + 30, 46 + 20 * number, w, 20, line, weight=500, colour="no")

    def _draw_busy(self, d: Drawing, w: int, ink: str) -> None:
        gpu = self._gpu
        key, value = "utilisation", gpu.utilisation
        if isinstance(value, Missing) and not isinstance(gpu.activity.sm_active, Missing):
            key, value = "sm_active", gpu.activity.sm_active
        if isinstance(value, Missing):
            d.write(_PAD, 38, 60, 34, MISSING, px=tokens.DISPLAY, weight=600)
            room = w - 2 * _PAD - 40
            why = f"{tr('monitor.reading.utilisation')}: {say(value.reason)}"
            for place, line in enumerate(tokens.wrapped(why, room, tokens.LABEL)[:3]):
                d.write(_PAD + 40, 40 + 16 * place, room, 16, line,
                        px=tokens.LABEL, colour="text3")  # fmt: skip
            return
        number = f"{value * 100:.0f}"
        wide = d.write(_PAD, 38, 80, 34, number, px=tokens.DISPLAY, weight=600)
        d.write(_PAD + wide + 3, 47, 20, 22, "%", colour="text2")
        name = tr("ui.monitor.busy" if key == "utilisation" else "ui.monitor.sm-active")
        d.write(_PAD, 72, 110, 16, name, px=tokens.LABEL, colour="text2")
        course = self._courses.get(Series(f"gpu{gpu.index}", key))
        if course is not None:
            draw_spark(d, course, (_PAD + 112, 42, w - 2 * _PAD - 112, 46), ink, 1.0)

    def _draw_bar(
        self, d: Drawing, x: float, wide: float, name: str,
        value: float | Missing, whole: float | Missing, unit: str, ink: str,
    ) -> None:  # fmt: skip
        text = pair(value, whole, "bytes" if unit == "bytes" else "watts")
        used = d.write(x, 96, wide, 18, name, px=tokens.LABEL, colour="text2")
        room = wide - used - 6
        d.write(x + used + 6, 96, room, 18, _elided(text, room, tokens.LABEL),
                px=tokens.LABEL, weight=600, align="right")  # fmt: skip
        d.box(x, 117, wide, 6, "naWash", radius=3)
        if not isinstance(value, Missing) and not isinstance(whole, Missing) and whole > 0:
            share = min(max(value / whole, 0.0), 1.0)
            if share > 0:
                d.box(x, 117, max(6.0, wide * share), 6, ink, radius=3)

    def _draw_foot(self, d: Drawing, w: int) -> None:
        gpu = self._gpu
        slowing = [] if isinstance(gpu.throttle, Missing) else sorted(gpu.throttle & SLOWING)
        clock = _text(gpu.sm_clock_mhz, "megahertz")
        link = ""
        if isinstance(gpu.pcie_width, int) and isinstance(gpu.pcie_generation, int):
            link = f", x{gpu.pcie_width} gen {gpu.pcie_generation}"
        right = f"{clock}{link}"
        wide = tokens.width(right, tokens.LABEL)
        d.write(w - _PAD - wide, 136, wide + 1, 22, right, px=tokens.LABEL, colour="text3")
        if isinstance(gpu.throttle, Missing):
            return
        names = ", ".join(tr(f"monitor.throttle.{reason}") for reason in slowing)
        state = "tight" if slowing else "fits"
        text = names or tr("monitor.throttle.none")
        text = _elided(text, w - 2 * _PAD - wide - 46, tokens.LABEL)
        room = tokens.width(text, tokens.LABEL, 500) + 34
        d.box(_PAD, 136, room, 22, f"{state}Wash", radius=tokens.CHIP)
        icon = "lightning-fill" if slowing else "check-circle-fill"
        d.icon(icon, _PAD + 6, 140, 14, f"{state}Fill")
        d.write(_PAD + 24, 136, room - 28, 22, text, px=tokens.LABEL, weight=500, colour=state)


class HostCard(Painted):
    """Processor, memory and drives, each with its last minute."""

    KEYS = ("cpu", "memory_used", "disk_read", "disk_written", "pressure_io")

    def __init__(self) -> None:
        super().__init__(Message.of("monitor.device.host"), height=_HEAD)
        self._host = HostSample()
        self._courses: Courses = {}

    def show_sample(self, host: HostSample, courses: Courses) -> None:
        """Show a sample, with the last minute of its readings."""
        self._host, self._courses = host, courses
        spoken = (f"{tr(f'monitor.reading.{key}')} {self._value(key)}" for key in self.KEYS)
        self.setAccessibleDescription(", ".join(spoken))
        self.update()

    def _value(self, key: str) -> str:
        host = self._host
        if key == "memory_used":
            return pair(host.memory_used, host.memory_total)
        each = next(each for each in HOST if each.key == key)
        return _text(each.take(host), each.unit)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.box(0, 0, w, h, "surface", "line", radius=tokens.CARD)
        d.icon("desktop-tower", _PAD - 2, 13, 18, "text2")
        title = tr("monitor.device.host")
        used = d.write(_PAD + 22, 11, w - 3 * _PAD, 22, title, px=tokens.SECTION, weight=600)
        if not isinstance(self._host.cores, Missing):
            cores = tr("ui.monitor.cores", count=len(self._host.cores))
            d.write(_PAD + used + 32, 11, w - used - 3 * _PAD - 16, 22, cores,
                    px=tokens.LABEL, colour="text2")  # fmt: skip
        names = [tr(f"monitor.reading.{key}") for key in self.KEYS]
        left = max(tokens.width(name, tokens.LABEL) for name in names) + 10
        right = max(tokens.width(self._value(key), tokens.LABEL, 600) for key in self.KEYS) + 10
        for number, (key, name) in enumerate(zip(self.KEYS, names, strict=True)):
            y = 40 + 25 * number
            d.write(_PAD, y, left, 22, name, px=tokens.LABEL, colour="text2")
            d.write(w - _PAD - right, y, right, 22, self._value(key),
                    px=tokens.LABEL, weight=600, align="right")  # fmt: skip
            room = w - 2 * _PAD - left - right
            course = self._courses.get(Series("host", key))
            if course is not None and room > 40:
                box = (_PAD + left, y + 2, room, 17)
                draw_spark(d, course, box, COLOURS[(number + 2) % 5], _top(key, self._host, course))


def _top(key: str, host: HostSample, course: Course) -> float:
    if key in ("cpu", "pressure_io"):
        return 1.0
    if key == "memory_used" and not isinstance(host.memory_total, Missing):
        return float(host.memory_total)
    known = course.high[course.high == course.high]
    return float(known.max()) if len(known) else 1.0


def _draw_slice(d: Drawing, each: SliceSample, y: float, w: int, ink: str) -> None:
    name = "" if isinstance(each.name, Missing) else each.name.rpartition("MIG ")[2]
    active = each.activity.sm_active
    share = MISSING if isinstance(active, Missing) else formed(active, "share")
    text = f"{pair(each.memory_used, each.memory_total)}  ·  SM {share}"
    wide = tokens.width(text, tokens.LABEL, 500)
    d.write(w - _PAD - wide, y, wide + 1, _LINE, text, px=tokens.LABEL, weight=500)
    label = _elided(f"{each.index}  {name}", w - 2 * _PAD - wide - 24, tokens.LABEL)
    d.swatch(_PAD, y + 6, ink, hatched=True)
    d.write(_PAD + 18, y, w, _LINE, label, px=tokens.LABEL, colour="text2")


def _draw_process(d: Drawing, process: GpuProcess, y: float, w: int) -> None:
    memory = _text(process.memory_bytes, "bytes")
    wide = tokens.width(memory, tokens.LABEL, 500)
    d.write(w - _PAD - wide, y, wide + 1, _LINE, memory, px=tokens.LABEL, weight=500)
    d.icon("gear-six", _PAD - 1, y + 4, 14, "text3")
    room = w - 2 * _PAD - 18 - wide - 8
    d.write(_PAD + 18, y, room, _LINE, _elided(process_name(process), room, tokens.LABEL),
            px=tokens.LABEL, colour="text2")  # fmt: skip


def process_name(process: GpuProcess) -> str:
    """Return what a process is called; names may hold anything."""
    if isinstance(process.name, Missing):
        return tr("monitor.process", pid=process.pid)
    printable = "".join(each for each in process.name if each.isprintable())
    return f"{printable} ({process.pid})"


def _listed(gpu: GpuSample) -> tuple[GpuProcess, ...]:
    return () if isinstance(gpu.processes, Missing) else gpu.processes


def _spoken(gpu: GpuSample) -> str:
    if is_lost(gpu) and isinstance(gpu.memory_used, Missing):
        return say(gpu.memory_used.reason)
    parts = [
        f"{tr('ui.monitor.busy')} {_text(gpu.utilisation, 'share')}",
        f"{tr('ui.monitor.memory')} {pair(gpu.memory_used, gpu.memory_total)}",
        f"{tr('ui.monitor.power')} {pair(gpu.power_w, gpu.power_limit_w, 'watts')}",
        _text(gpu.temperature_c, "celsius"),
    ]
    parts += [process_name(each) for each in _listed(gpu)]
    return ", ".join(parts)


def _text(value: float | Missing, unit: str) -> str:
    return MISSING if isinstance(value, Missing) else formed(value, unit)  # type: ignore[arg-type]


def _elided(text: str, room: float, px: int) -> str:
    """Return a text cut to its room; what is cut stands in the tooltip or elsewhere."""
    return tokens.metrics(px, 600).elidedText(text, Qt.TextElideMode.ElideRight, max(room, 0))
