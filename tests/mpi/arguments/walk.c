/* Calls every routine with every wrong argument, one at a time, and expects an error of the right class and all
 * references and handles as before. One or two ranks walk alike, but no call may get so far that it needs another rank.
 * An argument names the one routine to walk, and each call is printed. */
#include "tests/mpi/arguments/walk.h"
#include "tests/mpi/arguments/objects.h"

#include <string.h>

#include "tests/mpi/expect.h"

static int calls;

/* Collectives find out about their hosts with the first calls, and make what they need. */
static void warm_up(void)
{
    for (int round = 0; round < 200; round++) {
        int value = 1, sum = 0;
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void call_wrong(const struct walk_routine *routine, const walk_value *values,
                       const struct walk_parameter *parameter, const struct walk_wrong *wrong, int is_told)
{
    walk_values_refresh();
    if (is_told) {
        fprintf(stderr, "rank %d: %s: %s is %s\n", expect_rank, routine->name, parameter->name, wrong->name);
    }
    int code = routine->call(values), found = MPI_SUCCESS, fits = 0;
    MPI_Error_class(code, &found);
    for (int i = 0; i < 3; i++) {
        fits = fits || (wrong->classes[i] != 0 && found == wrong->classes[i]);
    }
    /* the tool interface is not initialized here: tool.c tests its answers */
    fits = fits || (strncmp(routine->name, "MPI_T_", 6) == 0 && code != MPI_SUCCESS);
    int is_collective = parameter->kind == WALK_COLOR; /* the others are notified (MPI_Comm_split) */
    int differs = walk_census_compare(!is_collective);
    calls++;
    if (fits && !differs && !is_collective) {
        return;
    }
    if ((!fits || differs) && expect_failures++ < 100) {
        fprintf(stderr, "rank %d of %d: %s: %s is %s: class %d, not %d%s\n", expect_rank, expect_size, routine->name,
                parameter->name, wrong->name, found, wrong->classes[0], differs ? "; references differ" : "");
    }
    walk_census_count();
}

/* MPI_ERR_BUFFER, too, if there are more than 2^31 elements. */
static void call_long(const struct walk_routine *routine, const walk_value *values, int parameter,
                      const struct walk_wrong *wrong, int is_told)
{
    walk_value more[WALK_PARAMETERS_MAX];
    int is_long = 0;
    memcpy(more, values, sizeof(more));
    for (int i = 0; i < routine->count; i++) {
        if (routine->parameters[i].kind == WALK_ELEMENTS_LARGE) {
            more[i] = (1LL << 31) + 1;
            is_long = 1;
        }
    }
    if (is_long && wrong->classes[0] == MPI_ERR_BUFFER) {
        call_wrong(routine, more, &routine->parameters[parameter], wrong, is_told);
    }
}

static int is_significant(const struct walk_parameter *parameter, int root)
{
    return parameter->where == WALK_EVERYWHERE ||
           (parameter->where == WALK_AT_ROOT ? root == expect_rank : expect_rank > 0);
}

static void walk_routine(const struct walk_routine *routine, int root, int is_told)
{
    walk_value rights[WALK_PARAMETERS_MAX] = {0};
    for (int i = 0; i < routine->count; i++) {
        rights[i] = walk_values[routine->parameters[i].kind].right;
        rights[i] = routine->parameters[i].kind == WALK_ROOT ? root : rights[i];
    }
    for (int i = 0; i < routine->count; i++) {
        const struct walk_parameter *parameter = &routine->parameters[i];
        const struct walk_values *kind = &walk_values[parameter->kind];
        for (int j = 0; j < kind->count && is_significant(parameter, root); j++) {
            walk_value values[WALK_PARAMETERS_MAX];
            memcpy(values, rights, sizeof(values));
            values[i] = kind->wrong[j].value;
            call_wrong(routine, values, parameter, &kind->wrong[j], is_told);
            call_long(routine, values, i, &kind->wrong[j], is_told);
        }
    }
}

/* Nothing has been sent, and calls that are right are carried out. */
static void nothing_is_left(void)
{
    int flag = -1, sum = 0, own = expect_rank + 1, left = (expect_rank + expect_size - 1) % expect_size, got = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQUAL(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQUAL(flag, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQUAL(MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
    EXPECT_EQUAL(sum, expect_size * (expect_size + 1) / 2);
    MPI_Sendrecv(&own, 1, MPI_INT, (expect_rank + 1) % expect_size, 0, &got, 1, MPI_INT, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT_EQUAL(got, left + 1);
    static char buffer[MPI_BSEND_OVERHEAD + 64];
    void *address;
    MPI_Buffer_attach(buffer, sizeof(buffer)); /* none of a communicator conflicts */
    EXPECT_EQUAL(MPI_Bsend(&own, 1, MPI_INT, expect_rank, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    MPI_Recv(&got, 1, MPI_INT, expect_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(MPI_Buffer_detach(&address, &flag), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Buffer_detach(&address, &flag), MPI_ERR_BUFFER);
    EXPECT_CLASS(MPI_Comm_detach_buffer(MPI_COMM_WORLD, &address, &flag), MPI_ERR_BUFFER);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    walk_values_make();
    warm_up();
    walk_census_count();
    for (int i = 0; i < walk_routine_count; i++) {
        if (argc > 1 && strcmp(argv[1], walk_routines[i].name) != 0) {
            continue;
        }
        for (int distance = 0; distance < expect_size && distance < 2; distance++) {
            walk_routine(&walk_routines[i], (expect_rank + distance) % expect_size, argc > 1);
        }
    }
    EXPECT(walk_census_compare(1) == 0);
    nothing_is_left();
    walk_objects_free();
    if (expect_rank == 0) {
        printf("%d routines, %d calls\n", walk_routine_count, calls);
    }
    return expect_end();
}
