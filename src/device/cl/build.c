/* build.c - the launches of one task, put together call by call. While a plan is arranged nothing is made: only scratch memory is counted. The
 * first thing that fails stays in `status`, everything after it does nothing. */
#include "device/cl/recipes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void stk_cl_give_up(stk_cl_build *b, stk_status status)
{
    if (b->status == STK_OK) b->status = status;
}

static bool idle(const stk_cl_build *b) { return !b->loading || b->status != STK_OK; }

/* ---- kernels --------------------------------------------------------------------------------------------- */

void stk_cl_kernel_of(stk_cl_build *b, const stk_cl_source *source, const char *kernel,
                      const char *options)
{
    void *program = NULL;
    b->args = b->nslots = 0;
    if (idle(b)) return;
    if (!STK_GROW(b->steps, b->nsteps, b->cap_steps)) {
        stk_cl_give_up(b, stk_fail_memory(b->err, "launches", sizeof *b->steps));
        return;
    }
    stk_cl_give_up(b, stk_cl_program_get(b->d, source, options, &program, b->err));
    if (b->status != STK_OK) return;
    b->step = &b->steps[b->nsteps];
    *b->step = (stk_cl_step){.label = b->task->label, .span = stk_task_span_arg(b->task->tag, 0)};
    stk_cl_give_up(b, b->d->backend->kernel_new(b->d, program, kernel, &b->step->kernel, b->err));
    if (b->status == STK_OK) b->nsteps++;
}

void stk_cl_kernel(stk_cl_build *b, const char *text, const char *kernel, const char *options, ...)
{
    char all[256];
    va_list list;
    va_start(list, options);
    vsnprintf(all, sizeof all, options, list);
    va_end(list);
    size_t used = strlen(all);
    if (b->axes[0])
        snprintf(all + used, sizeof all - used, " -DSK_GX=%d -DSK_GY=%d", (int)b->axes[0],
                 (int)b->axes[1]);
    stk_cl_kernel_of(b, stk_cl_text(text), kernel, all);
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

static void set_number(stk_cl_build *b, const void *value, size_t bytes)
{
    if (idle(b)) return;
    stk_cl_give_up(b,
                   b->d->backend->argument(b->d, b->step->kernel, b->args++, bytes, value, b->err));
}

static void set_place(stk_cl_build *b, const stk_block *block, int64_t offset, int64_t item)
{
    int64_t at = offset / item;
    if (idle(b)) return;
    uintptr_t given = stk_cl_given(block);
    set_number(b, &given, sizeof given);
    set_number(b, &at, sizeof at);
}

void stk_cl_arg(stk_cl_build *b, int32_t arg, int64_t item)
{
    stk_cl_arg_of(b, b->task, arg, item);
}

void stk_cl_arg_of(stk_cl_build *b, const stk_task *t, int32_t arg, int64_t item)
{
    if (idle(b)) return;
    const stk_link *link = &t->link[arg];
    if (link->slot < 0) {
        set_place(b, link->at.block, link->at.offset, item);
        return;
    }
    if (b->nslots == STK_CL_ARGS) {
        stk_cl_give_up(b, stk_fail(b->err, STK_ERR_INTERNAL, "a launch with too many arguments"));
        return;
    }
    b->slot[b->nslots++] = (stk_cl_place){
        .offset = link->at.offset, .slot = link->slot, .item = (int32_t)item, .index = b->args};
    b->args += 2;
}

int64_t stk_cl_room(stk_cl_build *b, int64_t bytes)
{
    int64_t at = b->scratch;
    b->scratch += stk_round_up(bytes, STK_ALIGN);
    return at;
}

void stk_cl_room_arg(stk_cl_build *b, int64_t room, int64_t item)
{
    if (idle(b)) return;
    set_place(b, b->task->scratch.block, b->task->scratch.offset + room, item);
}

void stk_cl_table_arg(stk_cl_build *b, const void *numbers, size_t bytes, int64_t item)
{
    if (idle(b)) return;
    stk_device *device = &b->d->device;
    stk_block *block = device->vt->memory.alloc(device, bytes);
    if (!block || !STK_GROW(b->tables, b->ntables, b->cap_tables)) {
        device->vt->memory.free(block);
        stk_cl_give_up(b, stk_fail_memory(b->err, "a table", bytes));
        return;
    }
    b->tables[b->ntables++] = block;
    stk_cl_give_up(b,
                   device->vt->queue.set(device, stk_address_of(block, 0), numbers, bytes, b->err));
    set_place(b, block, 0, item);
}

void stk_cl_numbers(stk_cl_build *b, const void *numbers, size_t bytes)
{
    set_number(b, numbers, bytes);
}

/* ---- grids ----------------------------------------------------------------------------------------------- */

/* The launch is complete: slots move into the plan's memory. */
static void finish_step(stk_cl_build *b)
{
    stk_cl_step *s = b->step;
    s->nslots = b->nslots;
    s->slots = stk_arena_array(&b->plan->arena, (size_t)b->nslots + 1, sizeof *s->slots);
    if (!s->slots) {
        s->nslots = 0;
        stk_cl_give_up(b, stk_fail_memory(b->err, "launches", sizeof *s->slots));
        return;
    }
    memcpy(s->slots, b->slot, (size_t)b->nslots * sizeof *s->slots);
}

void stk_cl_axes(stk_cl_build *b, int64_t x, int64_t y, int64_t z)
{
    if (!b->d->axis_limit || (y <= b->d->axis_limit && z <= b->d->axis_limit)) return;
    b->axes[0] = x;
    b->axes[1] = y;
}

/* Kernels count groups, and the items of a grid of one axis, in 32 bits. */
static bool is_countable(stk_cl_build *b, int64_t x, int64_t y, int64_t z, int64_t group)
{
    int64_t items = y == 1 && z == 1 ? group : 1;
    if (x <= INT32_MAX / items && y <= INT32_MAX && z <= INT32_MAX) return true;
    stk_cl_give_up(b,
                   stk_fail(b->err, STK_ERR_UNSUPPORTED,
                            "%s: %lld x %lld x %lld groups of %lld; kernels of %s count to 2^31: "
                            "use a smaller batch, or --device cpu",
                            b->task->label, (long long)x, (long long)y, (long long)z,
                            (long long)group, b->d->device.name));
    return false;
}

void stk_cl_groups(stk_cl_build *b, int64_t x, int64_t y, int64_t z, int64_t group)
{
    bool folded = b->axes[0] != 0;
    b->axes[0] = b->axes[1] = 0;
    if (idle(b) || !is_countable(b, folded ? x * y * z : x, folded ? 2 : y, z, group)) return;
    if (folded) {
        x *= y * z;
        y = z = 1;
    }
    stk_cl_step *s = b->step;
    s->local[0] = (size_t)group;
    s->local[1] = s->local[2] = 1;
    s->global[0] = (size_t)(stk_max_i64(x, 1) * group);
    s->global[1] = (size_t)stk_max_i64(y, 1);
    s->global[2] = (size_t)stk_max_i64(z, 1);
    finish_step(b);
}

void stk_cl_grid(stk_cl_build *b, int64_t items, int64_t group)
{
    stk_cl_groups(b, stk_ceil_div(items, group), 1, 1, group);
}
