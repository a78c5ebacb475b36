#!/usr/bin/env python3
"""Makes a shop's database: customers, their orders, and who came again. Usage: shop.py FILE [CUSTOMERS]"""

import random
import sqlite3
import sys


def customers(count):
    """(number, age, country, came again), with gaps in the numbers, as real ones have."""
    for i in range(count):
        yield 7 * i + random.randrange(7), random.randrange(18, 90), random.choice(["at", "de", "ch"])


def main():
    random.seed(1)
    file, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    with sqlite3.connect(file) as shop:
        shop.execute("CREATE TABLE customers (customer INTEGER PRIMARY KEY, age INTEGER, country TEXT, again INTEGER)")
        shop.execute("CREATE TABLE orders (customer INTEGER, amount REAL, items INTEGER, returned INTEGER)")
        for customer, age, country in customers(count):
            orders = [(customer, random.lognormvariate(3, 1), random.randrange(1, 9), random.random() < 0.2)
                      for _ in range(random.randrange(1, 6))]
            spent = sum(amount for _, amount, _, returned in orders if not returned)
            likes = 0.4 * len(orders) + 0.01 * spent - (1.5 if abs(age - 45) > 20 else 0)
            again = random.random() < 0.05 if likes < 1.2 else random.random() < 0.95
            shop.execute("INSERT INTO customers VALUES (?, ?, ?, ?)", (customer, age, country, again))
            shop.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders)
        # What a program reads: a row of numbers for each customer.
        shop.execute("CREATE VIEW features AS SELECT customer, country, again, (age - 50) / 20.0 AS age, count(*) / 3.0 - 1 AS orders,"
                     " sum(amount * (1 - returned)) / 80 - 1 AS spent, avg(items) / 4 - 1 AS items, avg(returned) AS returned"
                     " FROM customers JOIN orders USING (customer) GROUP BY customer ORDER BY customer")
    shop.close()


if __name__ == "__main__":
    main()
