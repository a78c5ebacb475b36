#!/usr/bin/env python3
"""Draws digits, as images of 28 x 28 pixels from 0 to 255, for the examples of training.

Usage: python3 examples/digits.py COUNT    writes images.npy [COUNT,28,28] and labels.npy [COUNT], both u8

Each is one of ten figures of 3 x 5 squares, some pixels wide and high, somewhere in the image, among noise.
"""

import argparse

import numpy as np

ROWS = [[[int(row) >> 2 & 1, int(row) >> 1 & 1, int(row) & 1] for row in figure] for figure in
        ["75557", "26227", "71747", "71717", "55711", "74717", "74757", "71222", "75757", "75717"]]


def draw(digit, rng):
    image = rng.integers(0, 60, (28, 28))
    high, wide = rng.integers(3, 5), rng.integers(3, 6)
    figure = np.kron(np.array(ROWS[digit]), np.ones((high, wide), int)) * rng.integers(150, 196)
    top, left = (rng.integers(2, 27 - size) if size < 25 else 2 for size in figure.shape)
    image[top:top + figure.shape[0], left:left + figure.shape[1]] += figure
    return image


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, metavar="COUNT")
    given = parser.parse_args()
    count = given.count
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 10, count)
    np.save("images.npy", np.array([draw(label, rng) for label in labels]).astype(np.uint8))
    np.save("labels.npy", labels.astype(np.uint8))


if __name__ == "__main__":
    main()
