/* Run foreign: options of MPICH's and Open MPI's mpiexec that `causeway run` refuses, each with what to do instead. */
#pragma once

/* What to do without the option of this name (no dashes); NULL: nobody's mpiexec has it. */
const char *run_foreign_advice(const char *name);
