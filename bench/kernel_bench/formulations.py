"""How NumPy's and PyTorch's users write what has no function of its own; cases.py uses the names of both classes.

The two libraries are handed in, since each is measured in a process that has loaded only itself.
"""
import functools


class NumPy:
    def __init__(self, np):
        self.np = np

    def softmax(self, x, axis):
        e = self.np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    def logsumexp(self, x, axis):
        largest = x.max(axis=axis, keepdims=True)
        return self.np.log(self.np.exp(x - largest).sum(axis=axis)) + largest.squeeze(axis)

    def layer_norm(self, x, gain, bias):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return centred / self.np.sqrt(variance + self.np.float32(1e-5)) * gain + bias

    def rms_norm(self, x, gain):
        return x / self.np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.np.float32(1e-5)) * gain

    def conv2d(self, image, kernel, stride=1, pad=0):
        np = self.np
        image = np.pad(image, ((0, 0), (0, 0), (pad, pad), (pad, pad))) if pad else image
        windows = np.lib.stride_tricks.sliding_window_view(image, kernel.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
        return np.einsum("ncyxij,kcij->nkyx", windows, kernel, optimize=True)

    def max_pool(self, image, window, stride):
        """As many maxima of strided slices as a window has elements: several times faster than windows as a view."""
        height, width = ((extent - window) // stride + 1 for extent in image.shape[2:])
        slices = [image[:, :, dy:dy + stride * height:stride, dx:dx + stride * width:stride]
                  for dy in range(window) for dx in range(window)]
        return functools.reduce(self.np.maximum, slices)

    def average_pool(self, image, window):
        n, c, height, width = image.shape
        return image.reshape(n, c, height // window, window, width // window, window).mean(axis=(3, 5))

    def attention(self, q, k, v, scale, causal):
        """q, k, v: batch, position, head, depth."""
        np = self.np
        q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
        scores = q @ k.swapaxes(2, 3) * np.float32(scale)
        if causal:
            scores = np.where(np.tri(q.shape[2], k.shape[2], dtype=bool), scores, np.float32(-np.inf))
        return (self.softmax(scores, 3) @ v).transpose(0, 2, 1, 3)

    def multi_head(self, x, wq, wk, wv, wo, scale):
        """x: batch, position, width; wq, wk, wv: width, head, depth; wo: head, depth, width."""
        b, s, width = x.shape
        heads, depth = wq.shape[1:]
        q, k, v = ((x.reshape(b * s, width) @ w.reshape(width, -1)).reshape(b, s, heads, depth) for w in (wq, wk, wv))
        mixed = self.attention(q, k, v, scale, causal=True)
        return (mixed.reshape(b * s, -1) @ wo.reshape(-1, width)).reshape(b, s, width)


class PyTorch:
    def __init__(self, torch):
        self.torch = torch
        self.functional = torch.nn.functional

    def rms_norm(self, x, gain):
        return x * self.torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * gain

    def attention(self, q, k, v, scale, causal):
        torch = self.torch
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        scores = q @ k.transpose(2, 3) * scale
        if causal:
            past = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
            scores = scores.masked_fill(~past, -torch.inf)
        return (torch.softmax(scores, 3) @ v).transpose(1, 2)

    def multi_head(self, x, wq, wk, wv, wo, scale):
        b, s, width = x.shape
        heads, depth = wq.shape[1:]
        q, k, v = ((x @ w.reshape(width, -1)).reshape(b, s, heads, depth) for w in (wq, wk, wv))
        mixed = self.attention(q, k, v, scale, causal=True)
        return mixed.reshape(b, s, -1) @ wo.reshape(-1, width)
