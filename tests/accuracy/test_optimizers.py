"""Optimizers against peaks that torchao published, of the two models that the table has traced.

Source: pytorch/ao, torchao/optim/README.md (072500ab): Llama 2 7B on an A100, full bf16, in GiB;
ViT-g on an RTX 4070 Ti SUPER, full bf16, in GB. Each base run is a row of the table; how far the
others are from theirs says what the optimizer's own term misses.
"""

import pytest
from predict import gpu_of, profile_of, settings_of
from rows import rows

from trainwright.estimate.memory.device_memory import Asked, estimate_memory

GB, GIB = 1e9, 2**30
LLAMA, VIT = "torchtune/llama-2-7b/adamw", "torchao/vit-g/adam"
PUBLISHED = {
    "bnb 8-bit": (LLAMA, {"optimizer": "adamw-8bit"}, 39.3 * GIB),
    "ao 8-bit": (LLAMA, {"optimizer": "adamw-8bit-torchao"}, 39.1 * GIB),
    "ao 4-bit": (LLAMA, {"optimizer": "adamw-4bit"}, 33.2 * GIB),
    "ao offload": (VIT, {"optimizer_offload": "cpu"}, 5.24 * GB),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_optimizers_term_adds_no_error(name):
    id, changes, measured = PUBLISHED[name]
    (row,) = [row for row in rows() if row.id == id]

    def peak(**changed):
        settings = settings_of(row).model_copy(update=changed)
        estimate = estimate_memory(
            Asked(profile_of(row), gpu_of(row), settings, batch=row.batch, sequence=row.length)
        )
        return estimate.allocated_peak.value

    base = peak() / row.measured_bytes - 1
    error = peak(**changes) / measured - 1
    print(f"{name}: {error:+.1%}, without it {base:+.1%}")
    assert abs(error) <= 0.04
    assert abs(error - base) <= 0.015
