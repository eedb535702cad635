/* Plans. */
#include "data/rewrite.h"

#include <string.h>

stk_status stk_plan_make(stk_dataset *ds, const stk_stream_options *options, stk_dataset **plan,
                         stk_error *err)
{
    (void)options;
    (void)err;
    *plan = stk_dataset_retain(ds);
    return STK_OK;
}

static uint64_t mix_text(uint64_t h, const char *text)
{
    for (; *text; text++) h = stk_seed_mix(h, (uint64_t)(unsigned char)*text);
    return h;
}

uint64_t stk_plan_fingerprint(const stk_dataset *ds)
{
    char text[256] = "";
    uint64_t h = mix_text(ds->salt, ds->kind->name);
    if (ds->kind->describe) ds->kind->describe(ds, text, sizeof text);
    h = mix_text(h, text);
    h = mix_text(h, stk_schema_describe(ds->schema, text, sizeof text));
    for (int32_t i = 0; i < ds->ninputs; i++)
        h = stk_seed_mix(h, stk_plan_fingerprint(ds->inputs[i]));
    return h;
}
