#include "apps/run/foreign.h"

#include <stddef.h>
#include <string.h>

#define PLACES "--hosts, --hostfile, --map-by and --bind-to say where ranks run"
#define ENVIRONMENT \
    "ranks get all variables of this environment: `env -i`, or `env -u NAME`, in front of it takes some away"
#define SETTINGS "leave it out: it sets what only that mpiexec has; `causeway doctor` lists what Causeway has"
#define FILES    "leave it out: output comes by whole lines, `-l` prefixes the rank"

static const struct {
    const char *name;
    const char *advice;
} rows[] = {
    {"machine", PLACES},
    {"default-hostfile", PLACES},
    {"nolocal", PLACES},
    {"arch", PLACES},
    {"npernode", PLACES},
    {"N", PLACES},
    {"pernode", PLACES},
    {"npersocket", PLACES},
    {"rank-by", PLACES},
    {"rankfile", PLACES},
    {"rf", PLACES},
    {"cpu-set", PLACES},
    {"cpu-list", PLACES},
    {"report-bindings", PLACES},
    {"binding", PLACES},
    {"bynode", PLACES},
    {"byslot", PLACES},
    {"nooversubscribe", "leave it out: ranks may be more than cores, and give way then"},
    {"soft", "`-n RANKS` says how many"},
    {"path", "name the program with its folder, or set PATH"},
    {"file", "give programs on the command line, separated by ' : '"},
    {"configfile", "give programs on the command line, separated by ' : '"},
    {"app", "give programs on the command line, separated by ' : '"},
    {"genvlist", ENVIRONMENT},
    {"genvnone", ENVIRONMENT},
    {"envlist", ENVIRONMENT},
    {"envnone", ENVIRONMENT},
    {"mca", SETTINGS},
    {"gmca", SETTINGS},
    {"prtemca", SETTINGS},
    {"pmixmca", SETTINGS},
    {"tune", SETTINGS},
    {"am", SETTINGS},
    {"prefix", SETTINGS},
    {"launcher-exec", "--launcher COMMAND"},
    {"bootstrap", SETTINGS},
    {"rmk", SETTINGS},
    {"iface", "--transport INTERFACE"},
    {"usize", SETTINGS},
    {"disable-auto-cleanup", SETTINGS},
    {"enable-recovery", SETTINGS},
    {"outfile-pattern", FILES},
    {"errfile-pattern", FILES},
    {"output", FILES},
    {"output-filename", FILES},
    {"merge-stderr-to-stdout", "leave it out, and write `2>&1` behind the command"},
    {"xterm", "start xterm as the program: causeway run -n 2 xterm -e ./program"},
    {"gdb", "start the debugger as the program: causeway run -n 2 xterm -e gdb ./program"},
    {"preload-binary", "leave it out: all ranks are on this machine"},
    {"verbose", "leave it out; --explain says how MPI served the program"},
    {"v", "leave it out; --explain says how MPI served the program"},
};

const char *run_foreign_advice(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].advice;
        }
    }
    return NULL;
}
