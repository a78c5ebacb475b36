#!/usr/bin/env python3
"""Makes a shop in a database: customers, their orders, and who came again. Usage: shop.py URL [CUSTOMERS]

URL is what `einrel run --database` takes: sqlite:FILE or postgresql://HOST/DATABASE, for which it calls psql.
"""

import random
import sqlite3
import subprocess
import sys

# What a program reads is the view: a row of numbers for each customer, of both tables.
SCHEMA = """
CREATE TABLE customers (customer INTEGER PRIMARY KEY, age INTEGER, country TEXT, again INTEGER);
CREATE TABLE orders (customer INTEGER, amount DOUBLE PRECISION, items INTEGER, returned INTEGER);
CREATE VIEW features AS
SELECT customer, country, again, (age - 50) / 20.0 AS age, count(*) / 3.0 - 1 AS orders, sum(amount * (1 - returned)) / 80 - 1 AS spent,
       avg(items) / 4.0 - 1 AS items, avg(returned) AS returned
FROM customers JOIN orders USING (customer) GROUP BY customer;
"""


def rows(count):
    """(number, age, country, came again), with gaps in the numbers, as real ones have; and the orders."""
    customers, orders = [], []
    for i in range(count):
        customer, age, country = 7 * i + random.randrange(7), random.randrange(18, 90), random.choice(["at", "de", "ch"])
        own = [(customer, random.lognormvariate(3, 1), random.randrange(1, 9), int(random.random() < 0.2))
               for _ in range(random.randrange(1, 6))]
        spent = sum(amount for _, amount, _, returned in own if not returned)
        likes = 0.4 * len(own) + 0.01 * spent - (1.5 if abs(age - 45) > 20 else 0)
        customers.append((customer, age, country, int(random.random() < (0.05 if likes < 1.2 else 0.95))))
        orders += own
    return {"customers": customers, "orders": orders}


def fill_sqlite(file, tables):
    with sqlite3.connect(file) as shop:
        shop.executescript(SCHEMA)
        for table, filled in tables.items():
            shop.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", filled)
    shop.close()


def fill_postgres(url, tables):
    script = SCHEMA
    for table, filled in tables.items():
        script += f"COPY {table} FROM STDIN;\n" + "".join("\t".join(map(str, row)) + "\n" for row in filled) + "\\.\n"
    subprocess.run(["psql", "--no-psqlrc", "--quiet", "--single-transaction", "--set", "ON_ERROR_STOP=1", "--dbname", url],
                   input=script, text=True, check=True)


def main():
    random.seed(1)
    url, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    if url.startswith("sqlite:"):
        fill_sqlite(url.removeprefix("sqlite:"), rows(count))
    else:
        fill_postgres(url, rows(count))


if __name__ == "__main__":
    main()
