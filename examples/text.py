#!/usr/bin/env python3
"""Writes a text, and its letters as numbers, for the example of a language model.

Usage: python3 examples/text.py LENGTH    writes text.txt, and now.npy and after.npy [LENGTH,32], u8: pieces of 32 letters,
                                          and for each letter the one that comes after it

The sentences are made by a few rules, so that there is something to learn: spelling, grammar, and who does what.
"""

import argparse

import numpy as np

LETTERS = " .abcdefghijklmnopqrstuvwxyz"
PIECE = 32
WHO = {"cat": "purrs", "dog": "barks", "bird": "sings", "frog": "croaks", "owl": "hoots"}
HOW = ["softly", "loudly", "all day", "at night", "again"]
WHERE = ["in the garden", "on the roof", "under the tree", "by the river"]


def sentence(rng):
    who = rng.choice(list(WHO))
    words = ["the", who, WHO[who], rng.choice(HOW)]
    if rng.random() < 0.6:
        words.append(rng.choice(WHERE))
    return " ".join(words) + ". "


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("length", type=int, metavar="LENGTH")
    given = parser.parse_args()
    length = given.length
    rng = np.random.default_rng(1)
    text = ""
    while len(text) < length * PIECE + 1:
        text += sentence(rng)
    with open("text.txt", "w", encoding="utf-8") as file:
        file.write(text)
    numbers = np.array([LETTERS.index(letter) for letter in text], np.uint8)
    np.save("now.npy", numbers[:length * PIECE].reshape(length, PIECE))
    np.save("after.npy", numbers[1:length * PIECE + 1].reshape(length, PIECE))


if __name__ == "__main__":
    main()
