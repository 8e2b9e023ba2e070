/* Calls whose arguments are others in Fortran than in C, so that they cannot be generated. */
#include <stdlib.h>

#include "mpi/fortran/entry.h"

void FORTRAN_ENTRY(init)(MPI_Fint *ierror)
{
    *ierror = FORTRAN_CALL(Init)(NULL, NULL);
}

void FORTRAN_ENTRY(init_thread)(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)
{
    *ierror = FORTRAN_CALL(Init_thread)(NULL, NULL, *required, provided);
}

void FORTRAN_ENTRY(pcontrol)(const MPI_Fint *level)
{
    (void)FORTRAN_CALL(Pcontrol)(*level);
}

/* A call that the compiler cannot see through, so that a variable is in memory (MPI 5.0, 19.1.17). */
void FORTRAN_ENTRY(f_sync_reg)(void *buf)
{
    (void)buf;
}

void FORTRAN_ENTRY(info_create_env)(MPI_Fint *info, MPI_Fint *ierror)
{
    MPI_Info info_c = FORTRAN_HANDLE(MPI_Info, info);
    *ierror = FORTRAN_CALL(Info_create_env)(0, NULL, &info_c);
    *info = FORTRAN_NUMBER(info_c);
}

void FORTRAN_ENTRY(info_get)(const MPI_Fint *info, const char *key, const MPI_Fint *valuelen, char *value,
                             MPI_Fint *flag, MPI_Fint *ierror, size_t key_length, size_t value_length)
{
    char *key_c = fortran_text(key, key_length, true);
    char *value_c = calloc(1, (*valuelen > 0 ? (size_t)*valuelen : 0) + 1);
    int flag_c = 0;
    if (key_c == NULL || value_c == NULL) {
        *ierror = MPI_ERR_NO_MEM;
    } else {
        *ierror = FORTRAN_CALL(Info_get)(FORTRAN_HANDLE(MPI_Info, info), key_c, *valuelen, value_c, &flag_c);
        fortran_pad(value, value_length, flag_c ? value_c : NULL);
    }
    *flag = flag_c != 0;
    free(key_c);
    free(value_c);
}

/* In C the length counts the NUL at the end. */
void FORTRAN_ENTRY(info_get_string)(const MPI_Fint *info, const char *key, MPI_Fint *buflen, char *value,
                                    MPI_Fint *flag, MPI_Fint *ierror, size_t key_length, size_t value_length)
{
    char *key_c = fortran_text(key, key_length, true);
    char *value_c = calloc(1, (*buflen > 0 ? (size_t)*buflen : 0) + 1);
    int flag_c = 0;
    int length = *buflen > 0 ? *buflen + 1 : *buflen;
    if (key_c == NULL || value_c == NULL) {
        *ierror = MPI_ERR_NO_MEM;
    } else {
        *ierror = FORTRAN_CALL(Info_get_string)(FORTRAN_HANDLE(MPI_Info, info), key_c, &length, value_c, &flag_c);
        fortran_pad(value, value_length, flag_c && *buflen > 0 ? value_c : NULL);
    }
    if (flag_c) {
        *buflen = length - 1;
    }
    *flag = flag_c != 0;
    free(key_c);
    free(value_c);
}

void FORTRAN_ENTRY(session_get_nth_pset)(const MPI_Fint *session, const MPI_Fint *info, const MPI_Fint *n,
                                         MPI_Fint *pset_len, char *pset_name, MPI_Fint *ierror, size_t pset_name_length)
{
    char *name_c = calloc(1, (*pset_len > 0 ? (size_t)*pset_len : 0) + 1);
    int length = *pset_len > 0 ? *pset_len + 1 : *pset_len;
    if (name_c == NULL) {
        *ierror = MPI_ERR_NO_MEM;
        return;
    }
    *ierror = FORTRAN_CALL(Session_get_nth_pset)(FORTRAN_HANDLE(MPI_Session, session), FORTRAN_HANDLE(MPI_Info, info),
                                                 *n, &length, name_c);
    if (*ierror == MPI_SUCCESS) {
        fortran_pad(pset_name, pset_name_length, *pset_len > 0 ? name_c : NULL);
        *pset_len = length - 1;
    }
    free(name_c);
}

void FORTRAN_ENTRY(comm_idup)(const MPI_Fint *comm, MPI_Fint *newcomm, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request request_c = FORTRAN_HANDLE(MPI_Request, request);
    MPI_Comm *promised = fortran_promise(newcomm);
    *ierror = promised == NULL ? MPI_ERR_NO_MEM
                               : FORTRAN_CALL(Comm_idup)(FORTRAN_HANDLE(MPI_Comm, comm), promised, &request_c);
    *newcomm = FORTRAN_NUMBER(MPI_COMM_NULL);
    if (*ierror != MPI_SUCCESS && promised != NULL) {
        fortran_clear(promised);
    }
    *request = FORTRAN_NUMBER(request_c);
}

void FORTRAN_ENTRY(comm_idup_with_info)(const MPI_Fint *comm, const MPI_Fint *info, MPI_Fint *newcomm,
                                        MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request request_c = FORTRAN_HANDLE(MPI_Request, request);
    MPI_Comm *promised = fortran_promise(newcomm);
    *ierror = promised == NULL
                  ? MPI_ERR_NO_MEM
                  : FORTRAN_CALL(Comm_idup_with_info)(FORTRAN_HANDLE(MPI_Comm, comm), FORTRAN_HANDLE(MPI_Info, info),
                                                      promised, &request_c);
    *newcomm = FORTRAN_NUMBER(MPI_COMM_NULL);
    if (*ierror != MPI_SUCCESS && promised != NULL) {
        fortran_clear(promised);
    }
    *request = FORTRAN_NUMBER(request_c);
}

/* An array of strings that a blank one ends, for C; `stride` from one to the next. NULL: no memory. */
static char **words_make(const char *words, size_t length, size_t stride)
{
    size_t count = 0;
    char **found = calloc(1, sizeof(char *));
    while (found != NULL) {
        char *word = fortran_text(words + count * stride, length, false);
        char **grown = realloc(found, (count + 2) * sizeof(char *));
        if (grown == NULL || word == NULL || word[0] == '\0') {
            free(word);
            return grown == NULL ? found : grown; /* without memory, shorter */
        }
        found = grown;
        found[count++] = word;
        found[count] = NULL;
    }
    return NULL;
}

static void words_free(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        free(words[i]);
    }
    free(words);
}

/* The command has a meaning at the root only, and may be anything elsewhere. */
static bool is_root(MPI_Comm comm, int root)
{
    int rank = MPI_UNDEFINED;
    return PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == root;
}

static int *errcodes_of(MPI_Fint *codes)
{
    return codes == mpi_f_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : codes;
}

void FORTRAN_ENTRY(comm_spawn)(const char *command, const char *argv, const MPI_Fint *maxprocs, const MPI_Fint *info,
                               const MPI_Fint *root, const MPI_Fint *comm, MPI_Fint *intercomm,
                               MPI_Fint *array_of_errcodes, MPI_Fint *ierror, size_t command_length, size_t argv_length)
{
    MPI_Comm comm_c = FORTRAN_HANDLE(MPI_Comm, comm);
    MPI_Comm made = MPI_COMM_NULL;
    bool starts = is_root(comm_c, *root);
    char *command_c = starts ? fortran_text(command, command_length, true) : NULL;
    char **argv_c = starts && argv != mpi_f_argv_null_ ? words_make(argv, argv_length, argv_length) : MPI_ARGV_NULL;
    *ierror = FORTRAN_CALL(Comm_spawn)(command_c, argv_c, *maxprocs, FORTRAN_HANDLE(MPI_Info, info), *root, comm_c,
                                       &made, errcodes_of(array_of_errcodes));
    *intercomm = FORTRAN_NUMBER(made);
    words_free(argv_c);
    free(command_c);
}

void FORTRAN_ENTRY(comm_spawn_multiple)(const MPI_Fint *count, const char *array_of_commands, const char *array_of_argv,
                                        const MPI_Fint *array_of_maxprocs, const MPI_Fint *array_of_info,
                                        const MPI_Fint *root, const MPI_Fint *comm, MPI_Fint *intercomm,
                                        MPI_Fint *array_of_errcodes, MPI_Fint *ierror, size_t command_length,
                                        size_t argv_length)
{
    MPI_Comm comm_c = FORTRAN_HANDLE(MPI_Comm, comm);
    MPI_Comm made = MPI_COMM_NULL;
    size_t programs = is_root(comm_c, *root) && *count > 0 ? (size_t)*count : 0;
    void *infos_few[FORTRAN_FEW];
    void **infos = fortran_handles(array_of_info, (int)programs, infos_few);
    char **commands = calloc(programs + 1, sizeof(char *));
    char ***arguments = array_of_argv == mpi_f_argvs_null_ ? MPI_ARGVS_NULL : calloc(programs + 1, sizeof(char **));
    for (size_t i = 0; commands != NULL && i < programs; i++) {
        commands[i] = fortran_text(array_of_commands + i * command_length, command_length, true);
        if (arguments != MPI_ARGVS_NULL) {
            arguments[i] = words_make(array_of_argv + i * argv_length, argv_length, programs * argv_length);
        }
    }
    *ierror =
        FORTRAN_CALL(Comm_spawn_multiple)(*count, commands, arguments, array_of_maxprocs, (MPI_Info *)(void *)infos,
                                          *root, comm_c, &made, errcodes_of(array_of_errcodes));
    *intercomm = FORTRAN_NUMBER(made);
    for (size_t i = 0; arguments != MPI_ARGVS_NULL && i < programs; i++) {
        words_free(arguments[i]);
    }
    words_free(commands);
    free(arguments);
    fortran_handles_drop(infos, infos_few);
}
