#include "apps/plogp/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

#define NS_PER_MS 1000000ull

static void sizes_parse(struct plogp_measure *measure, const char *text)
{
    char *end = NULL;
    for (; measure->size_count < PLOGP_SIZES_MAX && *text != '\0'; text = end + (*end == ',')) {
        measure->sizes[measure->size_count] = strtoull(text, &end, 10);
        if (end == text || (*end != ',' && *end != '\0')) {
            plogp_fail("the sizes are no numbers with commas between them; `causeway plogp` starts this program");
        }
        measure->size_count++;
    }
}

static void comms_make(struct plogp_measure *measure)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "causeway_algorithm", "barrier=dissemination,bcast=binomial,reduce=binomial");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &measure->sync);
    MPI_Info_free(&info);
    measure->arenas = calloc(PLOGP_CONTENDERS_MAX, sizeof(MPI_Comm));
    for (int i = 0; measure->arenas != NULL && i < PLOGP_CONTENDERS_MAX; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &measure->arenas[i]);
    }
    if (measure->arenas == NULL) {
        plogp_fail("no memory");
    }
}

static void comms_free(struct plogp_measure *measure)
{
    for (int i = 0; i < PLOGP_CONTENDERS_MAX; i++) {
        MPI_Comm_free(&measure->arenas[i]);
    }
    MPI_Comm_free(&measure->sync);
    free(measure->arenas);
}

/* Measures only the requested path. */
static void path_check(const struct plogp_measure *measure)
{
    char path[16] = "";
    int length = sizeof(path), flag = 0;
    MPI_Info info;
    MPI_Comm_get_info(MPI_COMM_WORLD, &info);
    MPI_Info_get_string(info, "causeway_path", &length, path, &flag);
    MPI_Info_free(&info);
    if (strcmp(path, cw_measured_path_name(measure->path)) != 0) {
        plogp_fail(measure->path == CW_MEASURED_RDMA
                       ? "not every host has an RDMA device that takes part: `causeway run --explain` on them says why"
                       : "the ranks are not where they were wanted");
    }
}

static void result_print(const struct plogp_measure *measure)
{
    char *text = cw_measured_encode(measure->result);
    if (text == NULL || printf("noise %g\n%s", measure->noise, text) < 0 || fflush(stdout) != 0) {
        plogp_fail(text == NULL ? "no memory" : "the results cannot be written");
    }
    free(text);
}

int main(int argc, char **argv)
{
    struct plogp_measure measure = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &measure.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &measure.size);
    if (argc != 5 || measure.size < 2) {
        plogp_fail("`causeway plogp` starts this program, with at least two ranks");
    }
    uint64_t budget_ns = strtoull(argv[2], NULL, 10) * NS_PER_MS;
    uint64_t now_ns = plogp_now_ns();
    measure.path = cw_measured_path_find(argv[1]);
    measure.deadline_ns = now_ns + budget_ns;
    sizes_parse(&measure, argv[4]);
    if (measure.path == CW_MEASURED_PATHS || measure.size_count == 0) {
        plogp_fail("the path is none of shared, wire and rdma, or there are no sizes");
    }
    path_check(&measure);
    comms_make(&measure);
    if (measure.rank == 0 && (measure.result = cw_measured_create()) == NULL) {
        plogp_fail("no memory");
    }
    plogp_measure_network(&measure, budget_ns / 5);
    if (strcmp(argv[3], "parameters") != 0) {
        plogp_measure_tests(&measure);
    }
    if (measure.rank == 0) {
        result_print(&measure);
        cw_measured_destroy(measure.result);
    }
    comms_free(&measure);
    MPI_Finalize();
    return 0;
}
