"""Cloud computers that people name like GPUs: which GPUs they have, and how many."""

from trainwright.catalog.names import name_key

_INSTANCES = {
    # AWS, accelerated instances (docs.aws.amazon.com/ec2/latest/instancetypes), recalled
    "p3.2xlarge": ("v100-16gb-sxm", 1),
    "p3.8xlarge": ("v100-16gb-sxm", 4),
    "p3.16xlarge": ("v100-16gb-sxm", 8),
    "p3dn.24xlarge": ("v100-32gb-sxm", 8),
    "p4d.24xlarge": ("a100-40gb-sxm", 8),
    "p4de.24xlarge": ("a100-80gb-sxm", 8),
    "p5.4xlarge": ("h100-80gb-sxm", 1),
    "p5.48xlarge": ("h100-80gb-sxm", 8),
    "p5e.48xlarge": ("h200-141gb-sxm", 8),
    "p5en.48xlarge": ("h200-141gb-sxm", 8),
    "p6-b200.48xlarge": ("b200", 8),
    "p6-b300.48xlarge": ("b300", 8),
    "g4dn.xlarge": ("t4", 1),
    "g4dn.12xlarge": ("t4", 4),
    "g5.xlarge": ("a10g", 1),
    "g5.12xlarge": ("a10g", 4),
    "g5.48xlarge": ("a10g", 8),
    "g6.xlarge": ("l4", 1),
    "g6.12xlarge": ("l4", 4),
    "g6.48xlarge": ("l4", 8),
    "g6e.xlarge": ("l40s", 1),
    "g6e.12xlarge": ("l40s", 4),
    "g6e.48xlarge": ("l40s", 8),
    # Google Cloud, accelerator-optimized machines (cloud.google.com/compute/docs/gpus), recalled
    "a2-highgpu-1g": ("a100-40gb-sxm", 1),
    "a2-highgpu-8g": ("a100-40gb-sxm", 8),
    "a2-megagpu-16g": ("a100-40gb-sxm", 16),
    "a2-ultragpu-1g": ("a100-80gb-sxm", 1),
    "a2-ultragpu-8g": ("a100-80gb-sxm", 8),
    "a3-highgpu-1g": ("h100-80gb-sxm", 1),
    "a3-highgpu-8g": ("h100-80gb-sxm", 8),
    "a3-megagpu-8g": ("h100-80gb-sxm", 8),
    "a3-ultragpu-8g": ("h200-141gb-sxm", 8),
    "a4-highgpu-8g": ("b200", 8),
    "g2-standard-4": ("l4", 1),
    "g2-standard-96": ("l4", 8),
    # Azure, GPU sizes (learn.microsoft.com/azure/virtual-machines/sizes), recalled
    "Standard_ND96asr_v4": ("a100-40gb-sxm", 8),
    "Standard_ND96amsr_A100_v4": ("a100-80gb-sxm", 8),
    "Standard_ND96isr_H100_v5": ("h100-80gb-sxm", 8),
    "Standard_ND96isr_H200_v5": ("h200-141gb-sxm", 8),
    "Standard_ND96isr_MI300X_v5": ("mi300x", 8),
    "Standard_NC24ads_A100_v4": ("a100-80gb-pcie", 1),
    "Standard_NC40ads_H100_v5": ("h100-94gb-nvl", 1),
}
"""Name -> id of its GPUs, and how many."""
_BY_KEY = {name_key(name): found for name, found in _INSTANCES.items()}


def gpus_of_instance(text: str) -> tuple[str, int] | None:
    """Return the id and the number of a cloud computer's GPUs; None where it is not known."""
    return _BY_KEY.get(name_key(text))
