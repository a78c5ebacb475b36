"""server.py PROGRAMS [CMAKE BUILD]: a PostgreSQL server of one's own, in a temporary folder.

Starts it with the programs of that folder (initdb, postgres, pg_config), prints a line with the URL of an empty database, and
ends the server and removes the folder when its standard input ends: however the process ends that started this one, its end
of the pipe closes. Of a build of Einrel, `CMAKE --install` installs the extension, below the temporary folder: the server
finds it there, nothing is written to the folders of the system, and the database has made it.
"""

import contextlib
import ctypes
import os
import pwd
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SETTINGS = {"listen_addresses": "''", "fsync": "off", "full_page_writes": "off", "autovacuum": "off",
            "shared_buffers": "64MB", "max_connections": "20", "log_min_messages": "fatal", "max_wal_senders": "0", "wal_level": "minimal"}
SET_PARENT_DEATH_SIGNAL = 1  # prctl


def become(user, most_file_bytes=None):
    """What the server does before it begins: it runs as no root, and ends with its parent. Perhaps it finds less room."""
    if most_file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_file_bytes, most_file_bytes))
    if user is not None:
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGQUIT)


class Server:
    """The database is at self.url while the context lasts, with the extension where there is a build."""

    def __init__(self, programs, cmake=None, build=None):
        self.programs, self.cmake, self.build = programs, cmake, build

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="einrel-postgres-")
        self.user = pwd.getpwnam("nobody") if os.getuid() == 0 else None
        self.server = None
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def call(self, program, *arguments, **options):
        options.setdefault("check", True)
        return subprocess.run([os.path.join(self.programs, program), *arguments], capture_output=True, text=True, cwd=self.folder,
                              preexec_fn=lambda: become(self.user), timeout=100, env={**os.environ, "LC_ALL": "C"}, **options)

    def start(self):
        if self.user is not None:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        data = os.path.join(self.folder, "data")
        self.call("initdb", "--pgdata", data, "--username", "tester", "--auth", "trust", "--no-sync", "--encoding", "UTF8",
                  "--locale", "C.UTF-8", "--no-instructions")
        self.url = f"postgresql://tester@/einrel?host={self.folder}"
        self.postgres = self.with_extension() if self.build else os.path.join(self.programs, "postgres")
        self.launch()
        self.sql("CREATE DATABASE einrel", "dbname=postgres user=tester host=" + self.folder)
        if self.build:
            self.sql("CREATE EXTENSION einrel")

    def with_extension(self):
        """A copy of the server that finds the extension. It looks for its files where they are seen from its own place."""
        root = os.path.join(self.folder, "root")
        programs, shared, libraries = (self.call("pg_config", "--" + what).stdout.strip() for what in ("bindir", "sharedir", "pkglibdir"))
        self.extensions = root + os.path.join(shared, "extension")
        subprocess.run([self.cmake, "--install", self.build, "--component", "postgres"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DESTDIR": root})
        os.makedirs(root + programs)
        for folder in (shared, os.path.join(shared, "extension"), libraries):
            for name in os.listdir(folder):
                if not os.path.lexists(os.path.join(root + folder, name)):
                    os.symlink(os.path.join(folder, name), os.path.join(root + folder, name))
        for folder, _, _ in os.walk(root):
            os.chmod(folder, 0o755)  # the server is another user's
        return shutil.copy(os.path.join(programs, "postgres"), root + programs)

    def launch(self, most_file_bytes=None):
        """Starts the server, and waits until it answers. None of its files gets larger."""
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value.strip(chr(39))}")]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.server = subprocess.Popen(
                [self.postgres, "-D", os.path.join(self.folder, "data"), "-k", self.folder, *settings],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, preexec_fn=lambda: become(self.user, most_file_bytes))
        end = time.monotonic() + 60
        while not self.answers():
            if self.server.poll() is not None or time.monotonic() > end:
                with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
                    raise RuntimeError("the server does not start: " + log.read())
            time.sleep(0.02)

    def answers(self):
        return self.call("pg_isready", "--host", self.folder, check=False).returncode == 0

    def psql(self, database=None):
        return [os.path.join(self.programs, "psql"), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--field-separator", "\t",
                "--set", "ON_ERROR_STOP=1", "--dbname", database or self.url]

    def sql(self, text, database=None):
        """What psql prints: a line for each row, tabs between the columns."""
        done = subprocess.run(self.psql(database), input=text, capture_output=True, text=True, timeout=100, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{text[:1000]}: {done.stderr}")
        return done.stdout

    def empty(self):
        """Nothing is in the database but the extension, in its schema, and the schema public."""
        self.sql("DROP EXTENSION IF EXISTS einrel CASCADE; "
                 "SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' \\gexec\n"
                 "CREATE SCHEMA public; CREATE EXTENSION einrel")

    @contextlib.contextmanager
    def without_extension(self):
        """As if nobody had installed it."""
        control = os.path.join(self.extensions, "einrel.control")
        os.rename(control, control + ".away")
        try:
            yield
        finally:
            os.rename(control + ".away", control)

    def stop(self, how=signal.SIGQUIT):
        """Ends the server at once, as a crash would."""
        self.server.send_signal(how)
        self.server.wait()

    def __exit__(self, *_):
        if self.server is not None and self.server.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def main(programs, *build):
    if os.getpid() != os.getsid(0):
        os.setsid()  # an interrupt of the terminal is for whoever started this, whose end of the pipe then closes
    with Server(programs, *build) as server:
        print(server.url, flush=True)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
