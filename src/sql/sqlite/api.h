#pragma once

// A loadable extension calls the SQLite of the program that loads it, through a table of functions.
#ifdef EINREL_SQLITE_EXTENSION
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3
#else
#include <sqlite3.h>
#endif
