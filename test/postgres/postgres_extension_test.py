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
        return SERVER.url.replace("tester@", "plain@")

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
        self.assertEqual(rows(SCHEMA), [["einrel"]])

    def test_a_run_that_fails_has_not_made_it(self):
        SERVER.sql('DROP EXTENSION einrel; DELETE FROM "X" WHERE i = 3 AND j = 4')
        self.refused(("hole", "i=3, j=4"))
        self.assertEqual(rows(SCHEMA), [])

    def test_who_may_not_make_it_is_told_what_to_type(self):
        SERVER.sql("DROP EXTENSION einrel")
        url = self.somebody()
        self.refused(("permission denied", "somebody who may has to type in it: CREATE EXTENSION einrel"), url=url)
        self.expect_product("--formats", "element", url=url)

    def test_it_is_found_whatever_the_search_path(self):
        for path in (None, "public", '"$user"', "", "public, pg_catalog", "pg_temp, public"):  # where tables are looked for
            with self.subTest(path=path):
                tables = {} if path is None else {"env": {**os.environ, "PGOPTIONS": "-c search_path=" + path.replace(" ", "\\ ")}}
                result = einrel("run", self.program, "--database", SERVER.url, "--in", "X=table:public.X", "--in", "Y=table:public.Y", "--formats",
                                "tile-4", "--out", "Z=table:public.Z", **tables)
                self.assertEqual(result.code, 0, result)
                np.testing.assert_allclose(self.table('public."Z"', (25, 7)), self.x @ self.y, rtol=1e-12)
                SERVER.sql('DROP TABLE public."Z"')

    def test_it_lies_in_a_schema_of_its_own_and_in_no_other(self):
        for statement in ("ALTER EXTENSION einrel SET SCHEMA public", "DROP EXTENSION einrel; CREATE EXTENSION einrel SCHEMA public"):
            with self.assertRaisesRegex(RuntimeError, "einrel"):
                SERVER.sql(statement)

    def test_who_may_use_nothing_but_the_database_may_call_it(self):
        self.expect_product("--formats", "tile-4", url=self.somebody())

    def test_a_schema_that_one_may_not_use_is_named(self):
        SERVER.sql("REVOKE USAGE ON SCHEMA einrel FROM PUBLIC")
        url = self.somebody()
        self.refused(("schema einrel", "GRANT USAGE ON SCHEMA einrel TO plain"), url=url)
        SERVER.sql("GRANT USAGE ON SCHEMA einrel TO plain")
        self.expect_product("--formats", "tile-4", url=url)

    def test_a_schema_in_which_others_can_make_functions_is_refused(self):
        self.somebody()
        for begin, end in (("GRANT CREATE ON SCHEMA einrel TO plain", "REVOKE CREATE ON SCHEMA einrel FROM plain"),
                           ("GRANT CREATE ON SCHEMA einrel TO PUBLIC", "REVOKE CREATE ON SCHEMA einrel FROM PUBLIC"),
                           ("ALTER SCHEMA einrel OWNER TO plain", "ALTER SCHEMA einrel OWNER TO tester"),
                           ("CREATE FUNCTION einrel.einrel_kernel(text, bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $2'; "
                            "ALTER FUNCTION einrel.einrel_kernel(text, bytea) OWNER TO plain", "DROP FUNCTION einrel.einrel_kernel(text, bytea)")):
            with self.subTest(begin=begin):
                SERVER.sql(begin)
                self.refused(("schema einrel", "could run with your rights"))
                SERVER.sql(end)
                self.expect_product("--formats", "tile-4")

    def test_one_that_is_made_in_a_schema_of_somebody_else_is_refused(self):
        SERVER.sql("DROP EXTENSION einrel; DROP SCHEMA einrel")
        self.somebody()
        SERVER.sql("CREATE SCHEMA einrel AUTHORIZATION plain")
        self.refused(("could run with your rights",))
        self.assertEqual(rows(SCHEMA), [])

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
