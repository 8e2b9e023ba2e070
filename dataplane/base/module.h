/* Module: a part of this project that is a shared library of its own, since it needs libraries that few processes do;
 * loaded when it is wanted.
 *
 * It is searched in the folder causeway/ next to the object that holds module.c, then as the dynamic loader does:
 * LD_LIBRARY_PATH, that object's run path, the system's folders. */
#pragma once

#include <stddef.h>

/* A module's exports begin with the identifier of its build, a string that both sides have. */
struct cw_module {
    const char *build;
};

/* Loads the library and finds what it exports as `symbol`. NULL, with one line in `error`: it cannot be loaded, or is
 * of another build. Any thread; the caller calls it once for each library. */
const struct cw_module *cw_module_load(const char *library, const char *symbol, const char *build, char *error,
                                       size_t error_bytes);
