#!/usr/bin/env python3
"""Makes samples with many labels, for the example of extreme classification.

Usage: python3 examples/extreme.py COUNT FEATURES LABELS    writes words.npy [COUNT,FEATURES] f32, tags.npy [COUNT,LABELS] bool

As products in AmazonCat have: a sample is about some labels out of very many, few of which are frequent, and holds words
that these labels like.
"""

import argparse

import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, metavar="COUNT")
    parser.add_argument("features", type=int, metavar="FEATURES")
    parser.add_argument("labels", type=int, metavar="LABELS")
    given = parser.parse_args()
    count, features, labels = given.count, given.features, given.labels
    rng = np.random.default_rng(1)
    liked = rng.integers(0, features, (labels, 12))
    frequency = 1 / np.arange(1, labels + 1)
    frequency /= frequency.sum()
    words = np.zeros((count, features), np.float32)
    tags = np.zeros((count, labels), bool)
    for sample in range(count):
        chosen = rng.choice(labels, 5, p=frequency)
        tags[sample, chosen] = True
        words[sample, rng.choice(liked[chosen].ravel(), 30)] = 1
        words[sample, rng.integers(0, features, 10)] = 1
    np.save("words.npy", (words / np.sqrt(40)).astype(np.float32))
    np.save("tags.npy", tags)


if __name__ == "__main__":
    main()
