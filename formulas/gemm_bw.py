"""Gradients of a matrix product C = A B."""


def grad_a(params, inputs, scalars):
    """grad_a[m, k] = sum over n of grad_c[m, n] b[k, n]."""
    return {"grad_a": inputs["grad_c"] @ inputs["b"].T}


def grad_b(params, inputs, scalars):
    """grad_b[k, n] = sum over m of a[m, k] grad_c[m, n]."""
    return {"grad_b": inputs["a"].T @ inputs["grad_c"]}
