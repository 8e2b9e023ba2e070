#include "dataplane/base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* By the run path, unless the library is installed in the same folder as this one: sanitizers call dlopen in our place,
 * and the loader then uses their run path. Builds with sanitizers have it as a constant. */
static const char *library_path(const char *library, char *path, size_t bytes)
{
#if defined(CW_BUILD_FOLDER)
    snprintf(path, bytes, "%s/%s", CW_BUILD_FOLDER "/dataplane", library);
#else
    Dl_info own;
    path[0] = '\0';
    const char *end = dladdr((const void *)(size_t)library_path, &own) == 0 ? NULL : strrchr(own.dli_fname, '/');
    if (end != NULL) {
        snprintf(path, bytes, "%.*s/causeway/%s", (int)(end - own.dli_fname), own.dli_fname, library);
    }
#endif
    return access(path, R_OK) == 0 ? path : library;
}

const struct cw_module *cw_module_load(const char *library, const char *symbol, const char *build, char *error,
                                       size_t error_bytes)
{
    char path[PATH_MAX];
    void *loaded = dlopen(library_path(library, path, sizeof(path)), RTLD_NOW | RTLD_LOCAL);
    if (loaded == NULL) {
        snprintf(error, error_bytes, "%s", dlerror());
        return NULL;
    }
    const struct cw_module *found = dlsym(loaded, symbol);
    if (found == NULL || strcmp(found->build, build) != 0) {
        snprintf(error, error_bytes, "%s is of another build (%s, not %s)", library,
                 found == NULL ? "without a table" : found->build, build);
        return NULL;
    }
    return found;
}
