/* What is in the cache folder, by kind, and how to get rid of it. Only names that are ours are looked at. */
#include "stoker/cache.h"

#include "base/cache_path.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file, or a folder (with a slash behind it) and the end of the names of its files. */
static const struct {
    const char *name, *ending, *what;
} kinds[] = {
    {"kernels.txt", "", "kernels chosen by timing them on this machine"},
    {"calibration/", ".txt", "what each device can do, measured for --device auto"},
    {"data_tune", "", "settings that input pipelines found for themselves"},
    {"index/", ".tfrecord", "where the records of TFRecord files start"},
    {"opencl/", ".bin", "programs that OpenCL devices compiled"},
    {"cuda/", ".bin", "programs that were compiled for CUDA"},
    {"opencl/", ".tiles", "sizes of tiles chosen by timing them on OpenCL devices"},
    {"cuda/", ".tiles", "sizes of tiles chosen by timing them on CUDA devices"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n >= m && !strcmp(name + n - m, ending);
}

/* One file; removed if asked to. */
static stk_status visit(const char *path, bool removes, stk_cache_kind *kind, stk_error *err)
{
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode)) return STK_OK;
    if (removes && unlink(path) != 0 && errno != ENOENT)
        return stk_fail_system(err, "remove it", path);
    kind->files++;
    kind->bytes += info.st_size;
    return STK_OK;
}

static stk_status visit_folder(const char *path, const char *ending, bool removes,
                               stk_cache_kind *kind, stk_error *err)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    char file[1400];
    stk_status status = STK_OK;
    while (folder && status == STK_OK && (entry = readdir(folder))) {
        if (!ends_with(entry->d_name, ending)) continue;
        snprintf(file, sizeof file, "%s%s", path, entry->d_name);
        status = visit(file, removes, kind, err);
    }
    if (folder) closedir(folder);
    return status;
}

static stk_status go_through(bool removes, stk_cache_report *out, stk_error *err)
{
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "cache: give a place for the report");
    memset(out, 0, sizeof *out);
    if (!stk_cache_path("", out->path, sizeof out->path)) {
        out->path[0] = 0;
        return STK_OK;
    }
    for (int i = 0; i < KINDS; i++) {
        stk_cache_kind *kind = &out->kinds[out->nkinds++];
        char path[1200];
        snprintf(kind->name, sizeof kind->name, "%s", kinds[i].name);
        snprintf(kind->what, sizeof kind->what, "%s", kinds[i].what);
        snprintf(path, sizeof path, "%s%s", out->path, kinds[i].name);
        STK_TRY(ends_with(path, "/") ? visit_folder(path, kinds[i].ending, removes, kind, err)
                                     : visit(path, removes, kind, err));
        out->files += kind->files;
        out->bytes += kind->bytes;
    }
    return STK_OK;
}

stk_status stk_cache_describe(stk_cache_report *out, stk_error *err)
{
    return go_through(false, out, err);
}
stk_status stk_cache_clear(stk_cache_report *out, stk_error *err)
{
    return go_through(true, out, err);
}
