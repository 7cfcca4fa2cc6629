"""Runs a forward pass for real, eager and compiled, and says how many bytes autograd saves.

    python compiled_runs.py PROGRAMS_FOLDER < specs.json > answers.json

The compiled one goes through torch's own partitioner (backend ``aot_eager_decomp_partition``,
which runs the graphs that it cuts without compiling kernels), on the CPU in fp32.
"""

import json
import os
import sys
import warnings

warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

import models  # noqa: E402
import step  # noqa: E402
import torch  # noqa: E402
from shaping import shape  # noqa: E402

torch.set_num_threads(1)


def saved(spec, compiled):
    torch._dynamo.reset()
    subject = models.build(spec)
    shape(subject, spec)
    model = subject.model.to_empty(device="cpu")
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data.zero_()
    batch = subject.batch(*spec["points"][0])
    ours = [*model.parameters(), *model.buffers(), *batch.inputs.values()]
    known = {tensor.untyped_storage().data_ptr() for tensor in ours}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    run = torch.compile(model, backend="aot_eager_decomp_partition") if compiled else model
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        step.scores(run(**batch.inputs))
    return sum(nbytes for nbytes, _ in kept.values())


specs = json.load(sys.stdin)
json.dump(
    {
        name: {kind: saved(spec, kind == "compiled") for kind in ("eager", "compiled")}
        for name, spec in specs.items()
    },
    answers,
)
answers.flush()
os._exit(0)
