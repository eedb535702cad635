/* Lists of named tensors. */
#include "train/named.h"

#include <stdlib.h>
#include <string.h>

stk_status stk_named_add(stk_named_list *list, const char *name, stk_tensor *tensor, stk_error *err)
{
    char *copy = stk_strdup(name);
    if (!copy || !STK_GROW(list->items, list->count, list->capacity)) {
        stk_free(copy);
        stk_tensor_release(tensor);
        return stk_fail_memory(err, name, sizeof *list->items);
    }
    list->items[list->count++] = (stk_named){copy, tensor};
    return STK_OK;
}

stk_tensor *stk_named_find(const stk_named_list *list, const char *name)
{
    for (int64_t i = 0; i < list->count; i++)
        if (!strcmp(list->items[i].name, name)) return list->items[i].tensor;
    return NULL;
}

void stk_named_release(stk_named_list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        stk_free(list->items[i].name);
        stk_tensor_release(list->items[i].tensor);
    }
    stk_free(list->items);
    *list = (stk_named_list){0};
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *stk_named_twice(const char **names, int64_t count)
{
    qsort(names, (size_t)count, sizeof *names, by_text);
    for (int64_t i = 1; i < count; i++)
        if (!strcmp(names[i - 1], names[i])) return names[i];
    return NULL;
}
