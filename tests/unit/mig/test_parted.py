"""NVIDIA's own example files of mig-parted are understood, judged, and written as they were."""

import json

import pytest
import yaml

from trainwright.catalog.mig import mig_tables
from trainwright.messages import UserError
from trainwright.mig.layout import check
from trainwright.mig.parted import of_layouts, read, write

TABLES = {table.id: table for table in mig_tables()}
# NVIDIA/mig-parted, examples/config.yaml: its configurations, as data.
ALL = {"devices": "all"}
OFF = {"mig-enabled": False}
ON = {"mig-enabled": True}
BALANCED_40 = {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}
CONFIG = {
    "version": "v1",
    "mig-configs": {
        "all-disabled": [ALL | OFF],
        "all-enabled": [ALL | ON | {"mig-devices": {}}],
        "all-1g.5gb": [ALL | ON | {"mig-devices": {"1g.5gb": 7}}],
        "all-2g.10gb": [ALL | ON | {"mig-devices": {"2g.10gb": 3}}],
        "all-3g.20gb": [ALL | ON | {"mig-devices": {"3g.20gb": 2}}],
        "all-balanced": [ALL | ON | {"mig-devices": BALANCED_40}],
        "custom-config": [
            {"devices": [0, 1, 2, 3]} | OFF,
            {"devices": [4]} | ON | {"mig-devices": {"1g.5gb": 7}},
            {"devices": [5]} | ON | {"mig-devices": {"2g.10gb": 3}},
            {"devices": [6]} | ON | {"mig-devices": {"3g.20gb": 2}},
            {"devices": [7]} | ON | {"mig-devices": BALANCED_40},
        ],
    },
}
# examples/dgx-station-80gb-config.yaml: four A100 80GB beside a display card.
A100, DISPLAY = {"device-filter": "0x20B210DE"}, {"device-filter": "0x1FB010DE"}
NONE = {"mig-devices": {}}
STATION = {
    "version": "v1",
    "mig-configs": {
        "all-enabled-dgx-station-80": [A100 | ALL | ON | NONE, DISPLAY | ALL | OFF | NONE],
        "all-balanced-dgx-station-80": [
            A100 | ALL | ON | {"mig-devices": {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}},
            DISPLAY | ALL | OFF | NONE,
        ],
        "balanced-k8s-dgx-station-80": [
            A100 | {"devices": [0]} | OFF | NONE,
            A100 | {"devices": [1]} | ON | {"mig-devices": {"3g.40gb": 2}},
            A100 | {"devices": [2]} | ON | {"mig-devices": {"2g.20gb": 3, "1g.10gb": 1}},
            A100 | {"devices": [4]} | ON | {"mig-devices": {"1g.10gb": 7}},
            DISPLAY | {"devices": [3]} | OFF | NONE,
        ],
    },
}
# deployments/systemd/config-default.yaml: one configuration with a list of cards.
DEFAULT = {
    "version": "v1",
    "mig-configs": {
        "all-1g.10gb": [
            {"device-filter": ["0x233010DE", "0x20B210DE"]}
            | ALL
            | ON
            | {"mig-devices": {"1g.10gb": 7}},
            {"device-filter": ["0x20B010DE", "0x20F610DE"]}
            | ALL
            | ON
            | {"mig-devices": {"1g.10gb": 4}},
        ],
        "all-1g.5gb.me": [ALL | ON | {"mig-devices": {"1g.5gb+me": 1}}],
    },
}


def text_of(document):
    """Return it as YAML, each part written out where it stands."""
    return yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False)


@pytest.mark.parametrize("document", [CONFIG, STATION, DEFAULT])
def test_a_published_file_comes_back_as_it_was(document):
    assert yaml.safe_load(write(read(text_of(document), "config.yaml"))) == document


@pytest.mark.parametrize(("document", "gpu"), [(CONFIG, "a100-40gb"), (STATION, "a100-80gb")])
def test_every_published_configuration_is_possible_on_its_gpu(document, gpu):
    table, judged = TABLES[gpu], 0
    for entries in read(text_of(document), "config.yaml").configs.values():
        for entry in entries:
            if entry.enabled and entry.instances and entry.meant(table):
                assert check(table, entry.instances).valid
                judged += 1
    assert judged >= 4


def test_a_filter_tells_one_size_of_card_from_the_other():
    entries = read(text_of(DEFAULT), "config.yaml").configs["all-1g.10gb"]
    meant = {gpu: [entry.meant(TABLES[gpu]) for entry in entries] for gpu in TABLES}
    assert meant["a100-80gb"] == meant["h100-80gb"] == [True, False]
    assert meant["a100-40gb"] == [False, True]
    assert meant["b200-180gb"] == [False, False]


def test_a_configmap_holds_the_file_that_it_wraps():
    inner = {"version": "v1", "mig-configs": {"a": [ALL | ON | {"mig-devices": {"3g.40gb": 2}}]}}
    around = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "custom-mig-config"}}
    wrapped = around | {"data": {"note": "by hand", "config.yaml": text_of(inner)}}
    assert read(text_of(wrapped), "map.yaml") == read(text_of(inner), "config.yaml")
    with pytest.raises(UserError, match="mig-configs"):
        read(text_of(around | {"data": {"config.yaml": "version: v1"}}), "map.yaml")


@pytest.mark.parametrize(
    ("written", "cut"),
    [
        ({"1c.3g.40gb": 3, "2c.3g.40gb": 1}, {"3g.40gb": 2}),
        ({"1c.3g.40gb": 3}, {"3g.40gb": 1}),
        ({"2c.3g.40gb": 3}, {"3g.40gb": 3}),
        ({"1c.7g.80gb": 3, "4c.7g.80gb": 1}, {"7g.80gb": 1}),
        ({"1c.4g.40gb": 4, "3g.40gb": 1}, {"4g.40gb": 1, "3g.40gb": 1}),
    ],
)
def test_compute_instances_share_the_instance_around_them(written, cut):
    document = {"version": "v1", "mig-configs": {"ci": [ALL | ON | {"mig-devices": written}]}}
    (entry,) = read(text_of(document), "ci.yaml").configs["ci"]
    assert entry.gpu_instances() == cut
    assert check(TABLES["a100-80gb"], cut).valid == (cut != {"3g.40gb": 3})


def test_our_layouts_are_written_in_its_form():
    table = TABLES["a100-40gb"]
    layouts = [check(table, BALANCED_40).instances, ()]
    assert yaml.safe_load(write(of_layouts(layouts))) == {
        "version": "v1",
        "mig-configs": {
            "trainwright": [
                {"devices": [0], "mig-enabled": True, "mig-devices": BALANCED_40},
                {"devices": [1], "mig-enabled": False, "mig-devices": {}},
            ]
        },
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version: v2\nmig-configs: {}", "version"),
        ("version: v1", "mig-configs"),
        ("mig-configs: {a: [{devices: some, mig-enabled: true}]}", "devices"),
        ("[", "config.yaml"),
    ],
)
def test_another_form_is_refused_by_its_key(text, told):
    with pytest.raises(UserError, match=told):
        read(text, "config.yaml")
