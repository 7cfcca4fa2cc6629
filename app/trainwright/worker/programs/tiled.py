"""The output head and the cross-entropy in tiles of tokens and words: TRL's fused head.

Follows trl 1.16 on a GPU with Triton (``add_fused_lm_head`` in ``trainer/utils.py``,
``kernels/chunked_logprob.py``): what it allocates, in its order. Of its vectors of a number a
token, only those that backward needs are made.
"""

from typing import Any

import step
import torch
from adapters import Adapted
from refusal import Refusal

COLUMNS = 32768
"""Words of a tile, however few the vocabulary has: ``_CHUNKED_LOGPROB_CHUNK_SIZE``."""

_library = torch.library.Library("trainwright", "FRAGMENT")
_library.define("fold_tile(Tensor tile, Tensor labels, Tensor(a!) sums) -> ()")
_library.define("tile_gradient(Tensor(a!) tile, Tensor labels, Tensor sums) -> ()")


@torch.library.register_fake("trainwright::fold_tile", lib=_library)
@torch.library.register_fake("trainwright::tile_gradient", lib=_library)
def _in_place(tile: torch.Tensor, labels: torch.Tensor, sums: torch.Tensor) -> None:
    return None


class TiledLoss(step.ChunkedLoss):
    """Cross-entropy of each next token, the head's product made tile by tile.

    ``rows`` is the tokens of a tile where a micro-batch has more; 0 where one tile holds all.

    Raises:
        Refusal: the head is adapted: its own weight is read, past the adapter, as TRL says too.
    """

    def __init__(self, head: Any, rows: int) -> None:
        if isinstance(head, Adapted):
            raise Refusal("worker.adapted-head")
        super().__init__(head)
        self.rows = rows

    def __call__(self, output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
        """Return the loss, divided by the count.

        Raises:
            ValueError: the model does something with what its head returns.
        """
        return self.each(output, labels).sum() / count

    def each(self, output: Any, labels: torch.Tensor, skipped: int = 0) -> torch.Tensor:
        """Return the loss of each next token of each row, but for the first ``skipped`` of it.

        Raises:
            ValueError: the model does something with what its head returns.
        """
        hidden = self.input_of(output)[:, -labels.size(1) : -1]
        labels = labels[:, 1:]
        head: Any = self.head
        taken = _Taken.apply(hidden, labels != step.IGNORED, skipped)  # type: ignore[no-untyped-call]
        labels = labels[:, skipped:]
        losses = _Tiled.apply(taken, head.weight, head.bias, labels.reshape(-1), self.rows)  # type: ignore[no-untyped-call]
        return losses.view(labels.shape)  # type: ignore[no-any-return]


class _Taken(torch.autograd.Function):
    """The tokens whose label counts, as a mask takes them: all but the first ``skipped``."""

    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, counted: torch.Tensor, skipped: int
    ) -> torch.Tensor:
        ctx.save_for_backward(counted)
        ctx.shape, ctx.skipped = hidden.shape, skipped
        taken = hidden[:, skipped:].clone(memory_format=torch.contiguous_format)
        return taken.view(-1, hidden.size(-1))

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        spread = grads[0].new_zeros(ctx.shape)
        counted = spread[:, ctx.skipped :]
        counted.copy_(grads[0].view(counted.shape))
        return spread, None, None


class _Tiled(torch.autograd.Function):
    """The loss of each token; backward makes the tiles again."""

    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, weight: Any, bias: Any, labels: torch.Tensor, rows: int
    ) -> torch.Tensor:
        device = hidden.device.type
        lower = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if lower else hidden.dtype
        losses = torch.zeros(len(hidden), dtype=torch.float32, device=hidden.device)
        buffer = hidden.new_empty((rows or len(hidden), COLUMNS), dtype=dtype)
        for part in _parts(hidden, rows):
            taken = _cast(hidden[part], dtype, rows)
            for words in _words(weight):
                tile = _tile(buffer, len(taken), words)
                torch.mm(taken, weight[words].to(dtype).t(), out=tile)
                if bias is not None:
                    tile.add_(bias[words].to(dtype))
                torch.ops.trainwright.fold_tile(tile, labels[part], losses[part])
        ctx.save_for_backward(hidden, weight, bias, labels, losses)
        ctx.dtype, ctx.rows = dtype, rows
        return losses.clone()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        hidden, weight, bias, labels, losses = ctx.saved_tensors
        inputs = (hidden, weight, bias)
        of_hidden, of_weight, of_bias = (
            torch.zeros(one.shape, dtype=torch.float32, device=one.device) if needed else None
            for one, needed in zip(inputs, ctx.needs_input_grad, strict=False)
        )
        buffer = hidden.new_empty((ctx.rows or len(hidden), COLUMNS), dtype=ctx.dtype)
        for part in _parts(hidden, ctx.rows):
            taken = _cast(hidden[part], ctx.dtype, ctx.rows)
            for words in _words(weight):
                of_words = weight[words].to(ctx.dtype)  # while the last ones still live, as there
                tile = _tile(buffer, len(taken), words)
                torch.mm(taken, of_words.t(), out=tile)
                if bias is not None:
                    tile.add_(bias[words].to(ctx.dtype))
                torch.ops.trainwright.tile_gradient(tile, labels[part], losses[part])
                if of_hidden is not None:
                    _accumulate(of_hidden[part], tile, of_words)
                if of_weight is not None:
                    _accumulate(of_weight[words], tile.t(), taken)
                if of_bias is not None:
                    of_bias[words] += tile.sum(dim=0, dtype=torch.float32)
        made = zip((of_hidden, of_weight, of_bias), inputs, strict=True)
        # Only now are the tile and the casts dropped.
        return *(None if one is None else one.to(like.dtype) for one, like in made), None, None


def _parts(hidden: torch.Tensor, rows: int) -> list[slice]:
    """Return the tokens of each tile; of many tiles the first stands for all but the last."""
    return [slice(0, -1), slice(-1, None)] if rows else [slice(None)]


def _words(weight: torch.Tensor) -> list[slice]:
    words = len(weight)
    return [slice(start, min(start + COLUMNS, words)) for start in range(0, words, COLUMNS)]


def _tile(buffer: torch.Tensor, tokens: int, words: slice) -> torch.Tensor:
    """Return a view of the buffer as the scores of some tokens.

    Its rows overlap where the tokens are more than it holds: tile after tile is written there.
    """
    columns = words.stop - words.start
    if tokens <= len(buffer):
        return buffer[:tokens, :columns]
    return buffer.as_strided((tokens, columns), (1, 1))


def _cast(hidden: torch.Tensor, dtype: torch.dtype, rows: int) -> torch.Tensor:
    """Return a tile's hidden states in the type that is computed in."""
    if hidden.dtype == dtype or not rows:
        return hidden.to(dtype)
    width = hidden.size(-1)
    cast = _tile(hidden.new_empty((rows, width), dtype=dtype), len(hidden), slice(0, width))
    return cast.copy_(hidden)


def _accumulate(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """Add the product to the gradient in place, in fp32."""
    if left.dtype == torch.float32:
        total.addmm_(left, right)
    else:
        torch.addmm(total, left, right, out_dtype=torch.float32, out=total)
