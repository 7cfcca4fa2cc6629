"""The network of this process, whole."""

import argparse

from networks import Network, build
from plan_file import Plan
from source import MAKERS
from world import World


def make(plan: Plan, options: argparse.Namespace, _world: World) -> Network:
    """Return the network, its weights untrained or loaded as the plan says."""
    return build(plan, options, MAKERS)
