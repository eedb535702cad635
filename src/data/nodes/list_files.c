/* list_files - paths that match patterns, as a memory source of strings: sorted, or in a shuffled order. */
#include "data/core/node.h"

#include <glob.h>
#include <string.h>

static int collect(int32_t n, const char *const *patterns, glob_t *found)
{
    for (int32_t i = 0; i < n; i++) {
        int result = glob(patterns[i], i ? GLOB_APPEND : 0, NULL, found);
        if (result == GLOB_NOSPACE) return result;
    }
    return 0;
}

stk_dataset *stk_data_list_files(int32_t n, const char *const *patterns, bool shuffle,
                                 uint64_t seed, stk_error *err)
{
    glob_t found;
    memset(&found, 0, sizeof found);
    stk_tensor *paths = NULL;
    stk_string *items = NULL;
    stk_status status = STK_OK;
    if (n < 1 || !patterns)
        status = stk_fail(err, STK_ERR_ARGUMENT, "list_files: no pattern given");
    if (status == STK_OK && collect(n, patterns, &found) != 0)
        status = stk_fail_memory(err, "list_files", 0);
    int64_t count = (int64_t)found.gl_pathc;
    if (status == STK_OK && count == 0)
        status =
            stk_fail(err, STK_ERR_IO,
                     "list_files: nothing matches \"%.200s\"%s; check the folder and the pattern",
                     patterns[0], n > 1 ? " or the other patterns" : "");
    if (status == STK_OK && !(items = stk_calloc((size_t)count, sizeof *items)))
        status = stk_fail_memory(err, "list_files", (size_t)count * sizeof *items);
    for (int64_t i = 0; i < count && status == STK_OK; i++)
        items[i] = (stk_string){found.gl_pathv[i], (int64_t)strlen(found.gl_pathv[i])};
    if (status == STK_OK) status = stk_tensor_strings(1, &count, items, &paths, err);
    if (found.gl_pathv) globfree(&found);
    stk_free(items);
    if (status != STK_OK) return NULL;
    stk_dataset *ds = stk_data_slices(1, &paths, NULL, NULL, err);
    stk_tensor_release(paths);
    return shuffle ? stk_data_shuffle(ds, STK_SHUFFLE_ALL, seed, true, err) : ds;
}
