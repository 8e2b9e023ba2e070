#include "mpi_testing.h"

#include "mpi/runtime/enter.h"
#include "mpi/runtime/errhandler.h"
#include "mpi/state/comm.h"
#include "mpi/state/process.h"
#include "tests/test.h"

static struct mpi_comm world = {.handle = MPI_COMM_WORLD, .size = 1, .name = "MPI_COMM_WORLD"};
static struct mpi_comm self = {.handle = MPI_COMM_SELF, .size = 1, .name = "MPI_COMM_SELF"};
static const char *call_name = "MPI_Test";

struct mpi_process mpi_process = {
    .state = MPI_PROCESS_RUNNING, .size = 4, .rank = 3, .thread_level = MPI_THREAD_SERIALIZED};
struct mpi_comm *mpi_comm_world = &world;
struct mpi_comm *mpi_comm_self = &self;

const char *mpi_call_name(void)
{
    return call_name;
}

void mpi_call_resume(const char *call)
{
    call_name = call;
}

void mpi_testing_call(const char *call)
{
    call_name = call;
}

void mpi_process_abort(int code)
{
    _exit(code);
}

struct cw_bootstrap_info cw_job_info(const struct cw_job *job)
{
    return (struct cw_bootstrap_info){.app_number = 7, .universe_size = 64};
}

void mpi_testing_start(void)
{
    world.errhandler = mpi_errhandler_find(MPI_ERRORS_RETURN);
    self.errhandler = mpi_errhandler_find(MPI_ERRORS_RETURN);
    mpi_errhandler_retain(world.errhandler);
    mpi_errhandler_retain(self.errhandler);
}
