#include "control/statistics/statistics_page.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

#define NAME "causeway-page"
#define LINK "/memfd:" NAME

enum { VERSION = 1, TRIES = 100, PATH_BYTES = 96 };

static const uint8_t magic[8] = "CWPAGE\n";

/* As it lies in memory; ends as they are: readers are on the same machine. */
struct layout {
    uint8_t magic[8];
    uint32_t version;
    _Atomic uint32_t sequence; /* odd: figures are being written */
    struct cw_statistics_page_identity identity;
    struct cw_statistics_page_figures figures;
};

struct cw_statistics_page {
    struct layout *layout;
    int file;
};

/* ---- writing ---- */

int cw_statistics_page_open(const struct cw_statistics_page_identity *identity, struct cw_statistics_page **page,
                            char *error, size_t error_bytes)
{
    struct cw_statistics_page *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the page of `causeway top`");
    }
    made->file = memfd_create(NAME, MFD_CLOEXEC);
    made->layout = made->file < 0 || ftruncate(made->file, sizeof(*made->layout)) != 0
                       ? MAP_FAILED
                       : mmap(NULL, sizeof(*made->layout), PROT_READ | PROT_WRITE, MAP_SHARED, made->file, 0);
    if (made->layout == MAP_FAILED) {
        int status = cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "memory for the page of `causeway top`: %s%s",
                                   strerror(errno), cw_errno_remedy(errno));
        made->layout = NULL;
        cw_statistics_page_close(made);
        return status;
    }
    made->layout->identity = *identity;
    made->layout->version = VERSION;
    memcpy(made->layout->magic, magic, sizeof(magic));
    *page = made;
    return CW_OK;
}

void cw_statistics_page_write(struct cw_statistics_page *page, const struct cw_statistics_page_figures *figures)
{
    struct layout *layout = page->layout;
    uint32_t sequence = atomic_load_explicit(&layout->sequence, memory_order_relaxed);
    atomic_store_explicit(&layout->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* a copy that has the figures has the odd number */
    layout->figures = *figures;
    atomic_store_explicit(&layout->sequence, sequence + 2, memory_order_release); /* behind the figures */
}

void cw_statistics_page_close(struct cw_statistics_page *page)
{
    if (page == NULL) {
        return;
    }
    if (page->layout != NULL) {
        munmap(page->layout, sizeof(*page->layout));
    }
    if (page->file >= 0) {
        close(page->file);
    }
    free(page);
}

/* ---- reading ---- */

/* Ends a text, and leaves nothing in it that would do something to a terminal. */
static void text_clean(char text[CW_STATISTICS_PAGE_TEXT_BYTES])
{
    text[CW_STATISTICS_PAGE_TEXT_BYTES - 1] = 0;
    for (char *at = text; *at != 0; at++) {
        *at = isprint((unsigned char)*at) && *at != '"' && *at != '\\' ? *at : '?';
    }
}

int cw_statistics_page_parse(const void *bytes, size_t count, struct cw_statistics_page_view *view)
{
    const struct layout *layout = bytes;
    if (count < sizeof(*layout) || memcmp(layout->magic, magic, sizeof(magic)) != 0 || layout->version != VERSION) {
        return CW_ERROR_ARGUMENT;
    }
    if (atomic_load_explicit(&layout->sequence, memory_order_relaxed) % 2 != 0) {
        return CW_ERROR_AGAIN;
    }
    view->figures = layout->figures;
    view->identity = layout->identity;
    text_clean(view->identity.job);
    text_clean(view->identity.host);
    text_clean(view->identity.program);
    return view->identity.rank < view->identity.size ? CW_OK : CW_ERROR_ARGUMENT;
}

/* By a copy that the kernel makes: its owner may make the file shorter at any moment, at which a look would end us. */
static bool file_read(const char *path, struct cw_statistics_page_view *view)
{
    struct layout copy;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), status = CW_ERROR_ARGUMENT;
    for (int tries = 0; file >= 0 && tries < TRIES; tries++) {
        ssize_t got = pread(file, &copy, sizeof(copy), 0);
        status = got == (ssize_t)sizeof(copy) ? cw_statistics_page_parse(&copy, sizeof(copy), view) : CW_ERROR_ARGUMENT;
        /* the copy is none of a moment: the same figures twice are */
        struct layout again;
        if (status == CW_OK && pread(file, &again, sizeof(again), 0) == (ssize_t)sizeof(again) &&
            memcmp(&again, &copy, sizeof(copy)) == 0) {
            break;
        }
        status = status == CW_OK ? CW_ERROR_AGAIN : status;
    }
    if (file >= 0) {
        close(file);
    }
    return status == CW_OK;
}

/* The page of a process; false: it has none, or none that we may look at. */
static bool process_read(const char *number, struct cw_statistics_page_view *view)
{
    char path[PATH_BYTES], link[PATH_BYTES], target[PATH_BYTES];
    struct stat status;
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%s/fd", number);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return false;
    }
    for (struct dirent *entry; !found && (entry = readdir(folder)) != NULL;) {
        snprintf(link, sizeof(link), "%.40s/%.20s", path, entry->d_name);
        ssize_t length = readlink(link, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = 0;
        found = strncmp(target, LINK, strlen(LINK)) == 0 && file_read(link, view);
    }
    found = found && fstat(dirfd(folder), &status) == 0;
    closedir(folder);
    if (found) {
        view->identity.process = (uint32_t)strtoul(number, NULL, 10);
        view->user = status.st_uid;
    }
    return found;
}

static int views_compare(const void *one, const void *other)
{
    const struct cw_statistics_page_view *left = one, *right = other;
    int jobs = strcmp(left->identity.job, right->identity.job);
    if (jobs != 0 || left->user != right->user) {
        return jobs != 0 ? jobs : left->user < right->user ? -1 : 1;
    }
    return left->identity.rank < right->identity.rank ? -1 : left->identity.rank > right->identity.rank;
}

int cw_statistics_pages_read(struct cw_statistics_page_view **views, size_t *count)
{
    DIR *folder = opendir("/proc");
    struct cw_statistics_page_view *found = calloc(CW_STATISTICS_PAGES_MAX, sizeof(*found));
    *count = 0;
    if (folder == NULL || found == NULL) {
        free(found);
        if (folder != NULL) {
            closedir(folder);
        }
        return folder == NULL ? CW_ERROR_SYSTEM : CW_ERROR_MEMORY;
    }
    for (struct dirent *entry; *count < CW_STATISTICS_PAGES_MAX && (entry = readdir(folder)) != NULL;) {
        *count += isdigit((unsigned char)entry->d_name[0]) && process_read(entry->d_name, &found[*count]);
    }
    closedir(folder);
    qsort(found, *count, sizeof(*found), views_compare);
    *views = found;
    return CW_OK;
}
