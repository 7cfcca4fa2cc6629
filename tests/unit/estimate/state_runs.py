"""Runs one real step of each optimizer, and says how many bytes of state it keeps.

    python state_runs.py PROGRAMS_FOLDER < spec.json > answers.json

The optimizers are those of torch, bitsandbytes and torchao, on the CPU, over the parameters
of the model that the spec names; gradients are random. What torch and torchao keep on the
host for a model on a GPU, the step numbers of Adafactor and of torchao, is not counted.
"""

import json
import os
import sys
import warnings

warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

import bitsandbytes.optim as bnb  # noqa: E402
import models  # noqa: E402
import step  # noqa: E402
import torch  # noqa: E402
import torchao.optim as ao  # noqa: E402
from shaping import shape  # noqa: E402

# torchao compiles its step; what it keeps does not depend on that.
torch.compile = lambda function, **_: function

OTHERS = {
    "adamw-8bit": bnb.AdamW8bit,
    "paged-adamw-8bit": bnb.PagedAdamW8bit,
    "lion": bnb.Lion,
    "adamw-8bit-torchao": ao.AdamW8bit,
    "adamw-4bit": ao.AdamW4bit,
}
NUMBERED_ON_THE_HOST = ("adafactor", "adamw-8bit-torchao", "adamw-4bit")


def kept(spec, name):
    subject = models.build(spec)
    shape(subject, spec)
    model = subject.model.to_empty(device="cpu")
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.02)
        if parameter.requires_grad:
            parameter.grad = torch.randn_like(parameter)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    settings = step.StepSettings(spec["precision"], optimizer=name)
    made = OTHERS[name](trainable) if name in OTHERS else step.make_optimizer(model, settings)
    made.step()
    nbytes = {}
    for part in step.whole(made):
        for state in part.state.values():
            for key, value in state.items():
                if key == "step" and name in NUMBERED_ON_THE_HOST:
                    continue
                for tensor in flat(value):
                    storage = tensor.untyped_storage()
                    nbytes[storage.data_ptr()] = storage.nbytes()
    return sum(nbytes.values())


def flat(value):
    if hasattr(value, "__tensor_flatten__"):
        return [getattr(value, name) for name in value.__tensor_flatten__()[0]]
    return [value] if torch.is_tensor(value) else []


spec = json.load(sys.stdin)
json.dump({name: kept(spec, name) for name in spec["names"]}, answers)
answers.flush()
os._exit(0)
