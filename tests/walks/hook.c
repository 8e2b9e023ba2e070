#define _GNU_SOURCE 1 /* dladdr */
/* Called by code that is compiled with -finstrument-functions: notes each call between walk_record(1) and
 * walk_record(0), a pair of functions once, in order. Writes lines to the file $WALK_FILE.PROCESS: module and offset of
 * the function, the same of its caller ("- 0": unknown), and the number of such calls. Preloaded by walks.py; any
 * thread. */
#define NO_WALK __attribute__((no_instrument_function))

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CALLS_MAX = 1 << 14, DEPTH_MAX = 1000 };

struct call {
    uintptr_t function;
    uintptr_t caller;
    unsigned count;
};

static struct call calls[CALLS_MAX]; /* a hash table; while is_locked */
static struct call *order[CALLS_MAX];
static unsigned call_count;
static atomic_flag is_locked = ATOMIC_FLAG_INIT;
static atomic_int is_on;
static _Thread_local uintptr_t stack[DEPTH_MAX]; /* of the calls since walk_record(1) */
static _Thread_local unsigned depth;

NO_WALK void __cyg_profile_func_enter(void *function, void *site);
NO_WALK void __cyg_profile_func_exit(void *function, void *site);
NO_WALK void walk_record(int on);

/* The entry of a pair, which may be a new one. */
NO_WALK static struct call *call_find(uintptr_t caller, uintptr_t function)
{
    for (uintptr_t at = (caller ^ function << 7) >> 2;; at++) {
        struct call *call = &calls[at % CALLS_MAX];
        if (call->count == 0) {
            *call = (struct call){.function = function, .caller = caller};
            order[call_count++] = call;
            return call;
        }
        if (call->function == function && call->caller == caller) {
            return call;
        }
    }
}

void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    if (atomic_load_explicit(&is_on, memory_order_relaxed) == 0) {
        return;
    }
    uintptr_t caller = depth > 0 && depth <= DEPTH_MAX ? stack[depth - 1] : 0;
    if (depth < DEPTH_MAX) {
        stack[depth] = (uintptr_t)function;
    }
    depth++;
    while (atomic_flag_test_and_set(&is_locked)) {
    }
    call_find(caller, (uintptr_t)function)->count++;
    atomic_flag_clear(&is_locked);
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function, (void)site;
    if (depth > 0) { /* else it was entered before walk_record(1) */
        depth--;
    }
}

NO_WALK static void place_write(FILE *out, uintptr_t address)
{
    Dl_info info;
    if (address != 0 && dladdr((void *)address, &info) != 0) {
        fprintf(out, "%s %lx ", info.dli_fname, (unsigned long)(address - (uintptr_t)info.dli_fbase));
    } else {
        fprintf(out, "- 0 ");
    }
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
    for (unsigned i = 0; out != NULL && i < call_count; i++) {
        place_write(out, order[i]->function);
        place_write(out, order[i]->caller);
        fprintf(out, "%u\n", order[i]->count);
    }
    if (out != NULL) {
        fclose(out);
    }
}
