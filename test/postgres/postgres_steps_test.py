"""Programs with state in PostgreSQL."""

from postgres_case import EmptyDatabase, main, rows
from state_tables import StateTables


class StepsInPostgres(StateTables, EmptyDatabase):
    def tables(self):
        return {name for (name,) in rows("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace >= 16384")}


if __name__ == "__main__":
    main()
