/* Equations of einsum, as they come from users. The first byte says how many operands there are, the next ones give
 * their ranks; the rest is the equation. Whatever it is, the graph takes it or says why not. */
#include "base/memory.h"
#include "stoker/graph.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 4 };
    static const int64_t twos[] = {2, 2, 2, 2, 2, 2, 2, 2}, ones[] = {1, 2, 1, 2, 1, 2, 1, 2};
    static const char *const names[] = {"a", "b", "c", "d"};
    stk_graph *g = NULL;
    stk_error err;
    stk_val in[MOST] = {0};
    int32_t n = size ? data[0] % MOST + 1 : 1;
    if (size < (size_t)n + 1 || stk_graph_new(&g, &err) != STK_OK) return 0;
    for (int32_t i = 0; i < n; i++)
        in[i] = stk_g_input(g, names[i], STK_F32, data[1 + i] % 9, data[1 + i] & 16 ? ones : twos);
    char *text = stk_strndup((const char *)data + 1 + n, size - 1 - (size_t)n);
    if (text) {
        stk_val y = stk_g_einsum(g, text, n, in);
        if ((y != 0) != (stk_graph_status(g, &err) == STK_OK)) abort();
        if (!y && strlen(err.message) < 10) abort();
    }
    stk_free(text);
    stk_graph_release(g);
    return 0;
}
