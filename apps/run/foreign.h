/* Run foreign: options of MPICH's and Open MPI's mpiexec that `causeway run` refuses, each with what to do instead. */
#ifndef RUN_FOREIGN_H
#define RUN_FOREIGN_H

/* What to do without the option of this name (no dashes); NULL: nobody's mpiexec has it. */
const char *run_foreign_advice(const char *name);

#endif
