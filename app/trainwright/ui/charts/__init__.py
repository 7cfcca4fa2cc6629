"""Charts painted with tokens: units in the heading, direct labels, horizontal hairlines."""
