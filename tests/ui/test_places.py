"""Places: a few by what people come for, each with one name everywhere."""

import subprocess
import sys

import pytest
from walk import spin

from trainwright.messages import LANGUAGES
from trainwright.ui import places
from trainwright.ui.i18n import tr
from trainwright.ui.widgets.palette import search_actions


def shown(window):
    return [place for place in window.rail._places if not place.isHidden()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_place_has_one_name_in_rail_menu_and_palette(opened, preferences, language):
    preferences.language = language
    window = opened()
    palette = {option.key: option.title for option in search_actions("")}
    for place in window.rail._places:
        name = tr(f"ui.place.{place.id}")
        assert place.accessibleName() == name
        assert window.actions_by_id[f"go-{place.id}"].text() == name
        assert palette[f"action:go-{place.id}"] == name
    names = [place.accessibleName() for place in window.rail._places]
    assert len(set(names)) == len(names) == len(places.ALL)


def test_at_most_seven_places_at_the_first_level_and_all_are_reached(opened):
    window = opened()
    assert len([place for place in window.rail._places if place.head is None]) <= 7
    for place in places.ALL:
        window.go(place)
        spin(10)
        listed = {each.id for each in shown(window)}
        assert place in listed
        assert window.rail._places[[p.id for p in window.rail._places].index(place)].isChecked()
        group = next((g for g in places.WORK if place in dict(g)), ())
        assert listed == {each[0][0] for each in places.WORK} | {"settings"} | set(dict(group))
        assert not any(each.visibleRegion().isEmpty() for each in shown(window))


def test_the_digits_of_the_shortcuts_follow_the_order_of_the_places(opened):
    window = opened()
    heads = [group[0][0] for group in places.WORK]
    keys = [window.actions_by_id[f"go-{head}"].shortcut().toString() for head in heads]
    assert keys == [f"Alt+{number}" for number in range(1, len(heads) + 1)]


def test_an_alert_is_seen_while_its_place_is_not_listed(opened):
    window = opened()
    window.rail.show_state("monitor", "tight", "hot")
    assert window.rail.state_of("computer") == "hot"
    window.go("monitor")
    assert window.rail.state_of("computer") == ""


PROGRAM = """
import sys
from trainwright.ui import places, warming

for _ in warming._steps():
    pass
before = set(sys.modules)
for name in places.ALL:
    __import__(f"trainwright.ui.screens.{name}")
print(sorted(set(sys.modules) - before), "torch" in sys.modules)
"""


def test_what_places_need_is_loaded_beforehand_and_torch_never():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert ran.stdout.split("\n")[0] == "[] False", ran.stderr
