"""Steps of training the networks of SoyBean's experiments by NumPy, which checks compare with."""
import numpy

ETA = 0.01  # as in the examples


def convolution(x, kernel, stride=1, padding=1):
    """The result, and what gives the gradients of both from the result's."""
    window = kernel.shape[2:]
    padded = numpy.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, window, axis=(2, 3))[:, :, ::stride, ::stride]

    def back(gradient):
        by_padded = numpy.zeros_like(padded)
        for dy, dx in numpy.ndindex(window):
            by_padded[placed(gradient, dy, dx, stride)] += numpy.einsum("bkyx,kc->bcyx", gradient, kernel[:, :, dy, dx])
        rows, columns = (slice(padding, extent - padding) for extent in padded.shape[2:])
        return by_padded[:, :, rows, columns], numpy.einsum("bkyx,bcyxij->kcij", gradient, windows, optimize=True)
    return numpy.einsum("bcyxij,kcij->bkyx", windows, kernel, optimize=True), back


def placed(result, dy, dx, stride):
    """Where in an image one place of all windows lies."""
    rows, columns = result.shape[2:]
    return (slice(None), slice(None), slice(dy, dy + stride * rows, stride), slice(dx, dx + stride * columns, stride))


def largest(x, size, stride):
    windows = numpy.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]
    result = windows.max((4, 5))

    def back(gradient):  # each largest value is alone but for zeros, of which relu knows no gradient
        by_x = numpy.zeros_like(x)
        for dy, dx in numpy.ndindex(size, size):
            here = placed(result, dy, dx, stride)
            by_x[here] += gradient * (x[here] == result)
        return by_x, None
    return result, back


def dense(x, weight):
    rows, columns = x.reshape(len(x), -1), weight.reshape(-1, weight.shape[-1])

    def back(gradient):
        return (gradient @ columns.T).reshape(x.shape), (rows.T @ gradient).reshape(weight.shape)
    return rows @ columns, back


def relu(x):
    return numpy.maximum(x, 0), lambda gradient: (gradient * (x > 0), None)


def cross_entropy(scores, classes):
    """The mean, and its gradient."""
    shifted = scores - scores.max(1, keepdims=True)
    log = shifted - numpy.log(numpy.exp(shifted).sum(1, keepdims=True))
    right = numpy.arange(scores.shape[1]) == classes[:, None]
    return -log[right].mean(), (numpy.exp(log) - right) / len(scores)


def squared_error(result, wanted):
    return ((result - wanted) ** 2).mean(), 2 * (result - wanted) / result.size


def step(arrays, x, layers, loss_of):
    """The loss, and all weights after a step. `layers`: what is done with x, and the weight that it takes, if any."""
    backs = []
    for function, weight in layers:
        x, back = function(x) if weight is None else function(x, arrays[weight])
        backs.append((back, weight))
    loss, gradient = loss_of(x, arrays["Y"])
    results = {"loss": loss}
    for back, weight in reversed(backs):
        gradient, by_weight = back(gradient)
        if weight is not None:
            results[f"next_{weight}"] = arrays[weight] - ETA * by_weight
    return results


def with_relu(function, weight):
    return [(function, weight), (relu, None)]


def alexnet(_library, arrays):
    def pooled(x):
        return largest(x, 3, 2)
    layers = [*with_relu(lambda x, kernel: convolution(x, kernel, 4, 0), "K1"), (pooled, None),
              *with_relu(lambda x, kernel: convolution(x, kernel, 1, 2), "K2"), (pooled, None),
              *(each for name in ("K3", "K4", "K5") for each in with_relu(convolution, name)), (pooled, None),
              *with_relu(dense, "W6"), *with_relu(dense, "W7"), (dense, "W8")]
    return step(arrays, arrays["Images"], layers, cross_entropy)


def vgg16(_library, arrays):
    layers = []
    for group, convolutions in enumerate((2, 2, 3, 3, 3), 1):
        for at in range(1, convolutions + 1):
            layers += with_relu(convolution, f"K{group}{at}")
        layers.append((lambda x: largest(x, 2, 2), None))
    layers += [*with_relu(dense, "W6"), *with_relu(dense, "W7"), (dense, "W8")]
    return step(arrays, arrays["Images"], layers, cross_entropy)


def dense_layers(_library, arrays):
    layers = [each for name in ("W1", "W2", "W3", "W4") for each in with_relu(dense, name)]
    return step(arrays, arrays["X"], layers[:-1], squared_error)


def convolution_layers(_library, arrays):
    layers = [each for name in ("K1", "K2", "K3", "K4", "K5") for each in with_relu(convolution, name)]
    return step(arrays, arrays["X"], layers[:-1], squared_error)
