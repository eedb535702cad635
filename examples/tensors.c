/* tensors.c - arrays: made, looked at through views, copied into another type, and how a mistake is
 * reported. The numbers printed are the ones in the comments. */
#include "stoker/tensor.h"

#include <stdio.h>

static void show(const char *title, const stk_tensor *t)
{
    char text[128];
    printf("%-12s %-16s [", title, stk_tensor_describe(t, text, sizeof text));
    for (int64_t i = 0; i < stk_tensor_count(t); i++)
        printf("%s%g", i ? " " : "", stk_tensor_at(t, i));
    printf("]\n");
}

/* Every step needs the one before it; the first that fails has written its reason into err. */
static stk_status walk(stk_tensor **made, stk_error *err)
{
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    stk_status status = stk_tensor_from(STK_F32, 2, (int64_t[]){2, 3}, numbers, &made[0], err);
    if (status == STK_OK)
        status = stk_tensor_slice(made[0], (int64_t[]){1, 0}, (int64_t[]){1, 3}, &made[1], err);
    if (status == STK_OK) status = stk_tensor_transpose(made[0], (int32_t[]){1, 0}, &made[2], err);
    if (status == STK_OK) status = stk_tensor_cast(made[2], STK_I8, &made[3], err);
    if (status == STK_OK) status = stk_tensor_set(made[0], 3, 40, err);
    return status;
}

int main(void)
{
    stk_error err;
    stk_tensor *made[4] = {NULL};
    if (walk(made, &err) != STK_OK) {
        fprintf(stderr, "%s: %s\n", stk_status_name(err.code), err.message);
        return 1;
    }
    show("matrix", made[0]);     /* float32[2,3] [1 2 3 40 5 6] */
    show("second row", made[1]); /* float32[1,3] [40 5 6]: a view sees the change */
    show("transposed", made[2]); /* float32[3,2] [1 40 2 5 3 6]: so does this one */
    show("as int8", made[3]);    /* int8[3,2] [1 4 2 5 3 6]: a copy does not */

    stk_tensor *wrong = NULL;
    if (stk_tensor_reshape(made[0], 2, (int64_t[]){4, -1}, &wrong, &err) != STK_OK)
        printf("%-12s %s: %s\n", "a mistake", stk_status_name(err.code), err.message);
    stk_tensor_release(wrong);
    for (int i = 0; i < 4; i++) stk_tensor_release(made[i]);
    return 0;
}
