"""Says what the torch of this interpreter can use here; imports it, which takes seconds."""

import json
import sys
from typing import Any


def main() -> None:
    """Write one JSON object."""
    found: dict[str, Any] = {"python": "{}.{}.{}".format(*sys.version_info[:3])}
    try:
        import torch
    except Exception as error:  # a broken build fails in many ways
        print(json.dumps(found | {"refused": f"{type(error).__name__}: {error}"[:300]}))
        return
    print(json.dumps(found | told(torch)))


def told(torch: Any) -> dict[str, Any]:
    """Return versions, and the GPUs that torch sees."""
    found: dict[str, Any] = {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "rocm": getattr(torch.version, "hip", None),
        "threads": int(torch.get_num_threads()),
        "architectures": [],
        "cudnn": None,
        "nccl": None,
        "gpus": [],
        "reason": None,
    }
    mps = getattr(torch.backends, "mps", None)
    found["mps"] = bool(mps is not None and mps.is_available())
    if not (found["cuda"] or found["rocm"]):
        return found
    try:
        torch.cuda.init()
        found["architectures"] = list(torch.cuda.get_arch_list())
        found["gpus"] = [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())]
        found["cudnn"] = torch.backends.cudnn.version()
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    except Exception as error:  # no driver, one that is too old, or a GPU without kernels
        lines = str(error).splitlines() or [type(error).__name__]
        found["reason"] = lines[0][:300]
    return found


if __name__ == "__main__":
    main()
