import numpy as np


def largest(params, inputs, scalars):
    """The k largest of each row, the largest first, and their places; the first of equals."""
    x, k = inputs["x"], params["k"]
    places = []
    rest = x
    for _ in range(k):
        at = rest.argmax(axis=1)
        places.append(at)
        rest = np.where(np.arange(x.shape[1]) == at[:, None], -np.inf, rest)
    places = np.stack(places, axis=1)
    return {"values": np.take_along_axis(x, places, axis=1), "places": places}


def segments(params, inputs, scalars):
    """Where segments begin, and twice x."""
    return {"kept": inputs["begins"], "y": 2 * inputs["x"]}
