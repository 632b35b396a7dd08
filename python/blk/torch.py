"""Kernels as operators of torch: seen by torch.compile, and by autograd where a backward operator is named.

Imported when `blk.torch` is asked for; the rest of the package does not need torch.
"""
import torch

__all__ = ["op"]


def _tuple(x):
    return x if isinstance(x, tuple) else (x,)


def _is_tensor(x):
    return isinstance(x, torch.Tensor)


def op(name, kernel, schema, *, outputs, arguments, backward=None, **launch):
    """Registers a kernel as the operator `name` and returns it.

    name: "library::operator".
    schema: the operator's, in torch's words: "(Tensor x, float eps) -> Tensor".
    outputs(*inputs): new tensors, one or a tuple; nothing may read their contents, as torch.compile calls this too.
    arguments(*outputs, *inputs): what the kernel is launched with, a tuple, or a dict for arguments by name.
    backward: an operator that takes the outputs' gradients, the inputs and the outputs, and returns a gradient for each
        input that is a tensor, or None in its place.
    launch: grid=, const parameters and options of every launch.
    """

    def run(*inputs):
        # A tensor that requires gradients gives no DLPack; the gradients are this operator's own matter.
        inputs = tuple(x.detach() if _is_tensor(x) else x for x in inputs)
        made = outputs(*inputs)
        passed = arguments(*_tuple(made), *inputs)
        if isinstance(passed, dict):
            kernel(**passed, **launch)
        else:
            kernel(*passed, **launch)
        return made

    made = torch.library.custom_op(name, run, mutates_args=(), schema=schema)
    made.register_fake(outputs)
    if backward is None:
        return made

    def save(ctx, inputs, output):
        values = (*inputs, *_tuple(output))
        ctx.save_for_backward(*(x for x in values if _is_tensor(x)))
        ctx.others = [None if _is_tensor(x) else (x,) for x in values]
        ctx.tensors = [_is_tensor(x) for x in inputs]

    def gradients(ctx, *of_outputs):
        saved = iter(ctx.saved_tensors)
        values = [next(saved) if other is None else other[0] for other in ctx.others]
        got = iter(_tuple(backward(*(g.contiguous() for g in of_outputs), *values)))
        return tuple(next(got) if is_tensor else None for is_tensor in ctx.tensors)

    made.register_autograd(gradients, setup_context=save)
    return made
