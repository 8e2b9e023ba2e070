#define _GNU_SOURCE 1 /* dladdr */
/* What -finstrument-functions calls: notes each function that is entered between walk_record(1) and walk_record(0), once,
 * in order, and writes "MODULE OFFSET" lines to the file $WALK_FILE.PROCESS. Preloaded by walks.py; any thread. */
#define NO_WALK __attribute__((no_instrument_function))

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FUNCTIONS_MAX = 1 << 14 };

static _Atomic(uintptr_t) seen[FUNCTIONS_MAX]; /* a hash table */
static uintptr_t order[FUNCTIONS_MAX];
static atomic_uint count;
static atomic_int is_on;

NO_WALK void __cyg_profile_func_enter(void *function, void *caller);
NO_WALK void __cyg_profile_func_exit(void *function, void *caller);
NO_WALK void walk_record(int on);

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    if (atomic_load_explicit(&is_on, memory_order_relaxed) == 0) {
        return;
    }
    uintptr_t address = (uintptr_t)function;
    for (uintptr_t at = address >> 2;; at++) {
        uintptr_t none = 0;
        _Atomic(uintptr_t) *slot = &seen[at % FUNCTIONS_MAX];
        if (atomic_compare_exchange_strong(slot, &none, address)) {
            order[atomic_fetch_add(&count, 1) % FUNCTIONS_MAX] = address;
            return;
        }
        if (none == address) {
            return;
        }
    }
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function, (void)caller;
}

void walk_record(int on)
{
    atomic_store(&is_on, on);
    const char *name = getenv("WALK_FILE");
    if (on != 0 || name == NULL) {
        return;
    }
    char path[4096];
    snprintf(path, sizeof(path), "%s.%d", name, (int)getpid());
    FILE *out = fopen(path, "we");
    for (unsigned i = 0; out != NULL && i < atomic_load(&count); i++) {
        Dl_info info;
        if (dladdr((void *)order[i], &info) != 0) {
            fprintf(out, "%s %lx\n", info.dli_fname, (unsigned long)(order[i] - (uintptr_t)info.dli_fbase));
        }
    }
    if (out != NULL) {
        fclose(out);
    }
}
