"""The extension as it is installed: who may make it, where it lies, and what is said where it does not."""

import os

import numpy as np

from postgres_case import SERVER, ProductTest, main, rows
from einrel_process import einrel

SCHEMA = "SELECT nspname FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'einrel'"


class Extension(ProductTest):
    def expect_product(self, *arguments, **options):
        result = self.run_product("--out", "Z=table:Z", *arguments, **options)
        self.assertEqual(result.code, 0, result)
        np.testing.assert_allclose(self.table('"Z"', (25, 7)), self.x @ self.y, rtol=1e-12)
        SERVER.sql('DROP TABLE "Z"')

    def somebody(self):
        """Who may read the tables and make others."""
        SERVER.sql('CREATE ROLE plain LOGIN; GRANT USAGE, CREATE ON SCHEMA public TO plain; GRANT SELECT ON "X", "Y" TO plain')
        self.addCleanup(SERVER.sql, "DROP OWNED BY plain; DROP ROLE plain")
        return SERVER.url.replace("einrel@", "plain@")

    def test_all_of_it_comes_and_goes_at_once(self):
        known = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'einrel%'"
        self.assertEqual(rows("SELECT extversion FROM pg_extension WHERE extname = 'einrel'"), rows("SELECT default_version FROM "
                                                                                                   "pg_available_extensions WHERE name = 'einrel'"))
        self.assertGreater(int(rows(known)[0][0]), 20)
        SERVER.sql("DROP EXTENSION einrel")
        self.assertEqual(rows(known), [["0"]])

    def test_a_run_makes_it_where_it_may(self):
        SERVER.sql("DROP EXTENSION einrel")
        self.expect_product("--formats", "tile-4")
        self.assertEqual(rows(SCHEMA), [["public"]])

    def test_a_run_that_fails_has_not_made_it(self):
        SERVER.sql('DROP EXTENSION einrel; DELETE FROM "X" WHERE i = 3 AND j = 4')
        self.refused(("hole", "i=3, j=4"))
        self.assertEqual(rows(SCHEMA), [])

    def test_who_may_not_make_it_is_told_what_to_type(self):
        SERVER.sql("DROP EXTENSION einrel")
        url = self.somebody()
        self.refused(("permission denied", "somebody who may has to type in it: CREATE EXTENSION einrel"), url=url)
        self.expect_product("--formats", "element", url=url)

    def test_it_is_found_in_any_schema(self):
        for number, paths in enumerate((None, "public", '"$user"', "")):  # where tables are looked for
            with self.subTest(paths=paths):
                schema = f'the tools, number {number}"'
                name = '"' + schema.replace('"', '""') + '"'
                SERVER.sql(f"CREATE SCHEMA {name}; ALTER EXTENSION einrel SET SCHEMA {name}")
                tables = {} if paths is None else {"env": {**os.environ, "PGOPTIONS": f"-c search_path={paths}"}}
                result = einrel("run", self.program, "--database", SERVER.url, "--in", "X=table:public.X", "--in", "Y=table:public.Y", "--formats",
                                "tile-4", "--out", "Z=table:public.Z", **tables)
                self.assertEqual(result.code, 0, result)
                np.testing.assert_allclose(self.table('public."Z"', (25, 7)), self.x @ self.y, rtol=1e-12)
                SERVER.sql('DROP TABLE public."Z"')
                self.assertEqual(rows(SCHEMA), [[schema]])

    def test_processes_find_it_in_any_schema(self):
        SERVER.sql("CREATE SCHEMA tools; ALTER EXTENSION einrel SET SCHEMA tools")
        x, y = (np.random.default_rng(seed).standard_normal((300, 300)) for seed in (3, 4))
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), y)
        self.succeed("run", self.program, "--database", SERVER.url, "--in", "X=" + self.path("x.npy"), "--in", "Y=" + self.path("y.npy"),
                     "--formats", "tile-100", "--out", "Z=" + self.path("z.npy"))
        np.testing.assert_allclose(np.load(self.path("z.npy")), x @ y, rtol=0, atol=1e-11)

    def test_a_schema_that_one_may_not_use_is_named(self):
        SERVER.sql("CREATE SCHEMA tools; ALTER EXTENSION einrel SET SCHEMA tools")
        url = self.somebody()
        self.refused(("schema tools", "GRANT USAGE ON SCHEMA tools TO plain"), url=url)
        SERVER.sql("GRANT USAGE ON SCHEMA tools TO plain")
        self.expect_product("--formats", "tile-4", url=url)

    def test_without_it_the_remedy_is_said(self):
        SERVER.sql("DROP EXTENSION einrel")
        with SERVER.without_extension():
            self.refused(("extension einrel", "--formats element"))
            self.expect_product("--formats", "element")
            np.save(self.path("y.npy"), self.y)
            self.succeed("run", self.program, "--database", SERVER.url, "--in", 'X=query:SELECT i, j, value FROM "X"', "--in",
                         "Y=" + self.path("y.npy"), "--out", "Z=" + self.path("z.npy"), "--formats", "element")
        np.testing.assert_allclose(np.load(self.path("z.npy")), self.x @ self.y, rtol=1e-12)


if __name__ == "__main__":
    main()
