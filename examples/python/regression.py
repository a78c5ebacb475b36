# Logistic regression by gradient descent: one step is traced once and runs as one program.
#   python3 examples/python/regression.py
import numpy as np

import einrel as er


@er.jit
def step(w, x, y):
    """One step of descent, and the loss before it."""
    loss = -er.mean(er.where(y, er.log(er.sigmoid(x @ w)), er.log(er.sigmoid(-(x @ w)))))
    return w - 2.0 * er.grad(loss, w), loss


def main():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5000, 20))
    wanted = rng.normal(size=20)
    y = rng.random(5000) < 1 / (1 + np.exp(-x @ wanted))
    w = np.zeros(20)
    for count in range(201):
        w, loss = step(w, x, y)
        if count % 50 == 0:
            print(f"step {count:3d}  loss {float(loss):.4f}")
    print(
        "angle to the wanted weights:",
        round(float(np.degrees(np.arccos(np.asarray(w) @ wanted / np.linalg.norm(w) / np.linalg.norm(wanted)))), 1),
        "degrees",
    )


if __name__ == "__main__":
    main()
