"""What the tracer writes down of a call: the sizes that its kernel's time depends on."""

import importlib

import pytest

from trainwright.worker import client

torch = pytest.importorskip("torch")
aten = torch.ops.aten


@pytest.fixture
def dims(monkeypatch):
    """Return a function that calls an operator on real tensors and returns its dimensions."""
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    costs = importlib.import_module("costs")
    autocast = importlib.import_module("autocast")

    def of(op, *args, weights=()):
        out = op(*args)
        given, made = list(autocast.tensors(args)), list(autocast.tensors(out))

        def lasts(tensor):
            return any(tensor is one for one in weights)

        return costs.dims(costs.describe(op), args, {}, out, given, made, lasts)

    return of


def test_a_product_names_the_bytes_that_no_batch_changes(dims):
    rows, weight = torch.zeros(24, 16), torch.zeros(16, 8)
    bias = torch.zeros(8)
    assert dims(aten.mm.default, rows, weight) == (1, 24, 8, 16, 0)
    assert dims(aten.mm.default, rows, weight, weights=[weight]) == (1, 24, 8, 16, 512)
    found = dims(aten.addmm.default, bias, rows, weight, weights=[weight, bias])
    assert found == (1, 24, 8, 16, 512 + 32)


@pytest.mark.parametrize(
    ("mask", "asked"),
    [((True, True, False), 3), ((False, True, True), 6), ((True, False, False), 1)],
)
def test_a_convolution_names_its_channels_and_which_gradients_are_asked_for(dims, mask, asked):
    """Padded outside, as TensorFlow's models are: no stride would tell the channels."""
    image, weight = torch.zeros(2, 6, 17, 17), torch.zeros(8, 3, 3, 3)
    shape = ([2, 2], [0, 0], [1, 1], False, [0, 0], 2)
    known = (2 * 8 * 8, 8, 3 * 9, 2, image.numel(), 6)
    assert dims(aten.convolution.default, image, weight, None, *shape) == (*known, 0)
    gradient = torch.zeros(2, 8, 8, 8)
    args = (gradient, image, weight, [8], *shape, list(mask))
    assert dims(aten.convolution_backward.default, *args) == (*known, asked)


def test_an_output_of_a_transposed_convolution_meets_some_of_the_taps(dims):
    image, weight = torch.zeros(2, 6, 8, 8), torch.zeros(6, 4, 4, 4)
    found = dims(aten.convolution.default, image, weight, None, [2, 2], [1, 1], [1, 1], True,
                 [0, 0], 1)  # fmt: skip
    rows, out_channels, terms, groups, inputs, channels, _ = found
    assert (rows, out_channels, groups, inputs, channels) == (2 * 256, 4, 1, image.numel(), 6)
    assert rows * out_channels * terms == image.numel() * 4 * 16  # multiply-adds


@pytest.mark.parametrize("training", [True, False])
def test_a_batch_norm_names_its_channels_and_whether_it_sums(dims, training):
    image, each = torch.zeros(4, 6, 5, 5), torch.ones(6)
    args = (image, each, each, each, each, training, 0.1, 1e-5)
    assert dims(aten.native_batch_norm.default, *args) == (600, 6, int(training))
    stats = (each, each) if training else (torch.zeros(0), torch.zeros(0))
    args = (image, image, each, each, each, *stats, training, 1e-5)
    found = [
        dims(aten.native_batch_norm_backward.default, *args, mask)
        for mask in ([True, False, False], [True, True, True])
    ]
    assert found == [(600, 6, int(training)), (600, 6, 1)]


def test_weights_that_are_normalised_have_channels_too(dims):
    weights = torch.zeros(1, 6, 27)
    args = (weights, None, None, None, None, True, 0.0, 1e-5)
    assert dims(aten.native_batch_norm.default, *args) == (162, 6, 1)
