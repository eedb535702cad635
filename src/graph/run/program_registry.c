/* program_registry.c - the list of all living programs, so that a report can put names, work and traffic to the spans of a trace
 * without being handed every program that ran. Not used while programs run. */
#include "graph/run/program.h"

#include "base/trace.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and the numbers */
static stk_program *first_program;
static uint32_t last_serial;

void stk_program_number(stk_program *p)
{
    pthread_mutex_lock(&lock);
    last_serial = last_serial + 1 < STK_TAG_SERIALS ? last_serial + 1 : 1;
    p->serial = last_serial;
    pthread_mutex_unlock(&lock);
}

void stk_program_enlist(stk_program *p)
{
    pthread_mutex_lock(&lock);
    p->next_program = first_program;
    first_program = p;
    pthread_mutex_unlock(&lock);
}

void stk_program_delist(stk_program *p)
{
    pthread_mutex_lock(&lock);
    stk_program **link = &first_program;
    while (*link && *link != p) link = &(*link)->next_program;
    if (*link) *link = p->next_program;
    pthread_mutex_unlock(&lock);
}

/* Every result of the launch is a variable's memory. Chains list inputs and outputs per segment. */
static bool only_updates(const stk_program *p, const stk_task *t)
{
    int32_t stride = t->nin + t->nout, outputs = 0;
    for (int32_t i = 0; stride > 0 && i < t->nargs; i++) {
        if (i % stride < t->nin) continue;
        outputs++;
        if (p->plan.home[stk_root(&p->plan, t->arg[i])].place != STK_AT_VARIABLE) return false;
    }
    return outputs > 0;
}

/* Texts of a report outlive the program. */
static const char *lasting(const char *place)
{
    const char *kept = place ? stk_trace_intern(place) : NULL;
    return kept ? kept : "";
}

static void describe(const stk_program *p, stk_launch_facts *out)
{
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        const stk_task *t = &p->plan.tasks[k];
        const stk_origin *origin = &p->g->nodes[t->node].origin;
        stk_task_report about;
        p->device->vt->kernels.report(&p->plan, k, &about);
        out[k] = (stk_launch_facts){
            .tag = t->tag,
            .label = t->label,
            .kernel = t->kernel < 0 ? "control" : stk_kernel_name((stk_kernel)t->kernel),
            .impl = about.impl,
            .flops = t->flops,
            .bytes = t->bytes,
            .threads = about.threads,
            .parts = about.parts,
            .group = t->group,
            .updates = t->kernel >= 0 && only_updates(p, t),
            .place = lasting(origin->place),
            .backward = origin->part == STK_PART_BACKWARD,
            .device = lasting(p->device->name),
            .remote = !stk_device_shares(p->device)};
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Values of the plan that are not in the graph are copies on their way into variables. */
static stk_origin origin_of(const stk_program *p, int64_t value)
{
    if (value >= p->g->nvalues) return (stk_origin){NULL, STK_PART_UPDATE};
    return p->g->nodes[p->g->values[value].node].origin;
}

/* Arenas are drawn one behind the other. */
static int64_t in_all_arenas(const stk_plan *plan, int32_t arena, int64_t at)
{
    for (int32_t i = 0; i < arena; i++) at += plan->arena_size[i];
    return at;
}

/* Fills out (NULL: only counts) and returns how many there are. */
static int64_t list_buffers(const stk_program *p, stk_buffer_facts *out)
{
    const stk_plan *plan = &p->plan;
    int64_t n = 0;
    for (int64_t v = 1; v < plan->nvalues; v++) {
        const stk_home *h = &plan->home[v];
        if (h->root != v || h->place != STK_AT_ARENA || h->last < 0 || h->bytes <= 0) continue;
        stk_origin origin = origin_of(p, v);
        if (out)
            out[n] = (stk_buffer_facts){.at = in_all_arenas(plan, h->arena, h->at),
                                        .bytes = h->room,
                                        .first = h->first,
                                        .last = h->last,
                                        .kind = origin.part,
                                        .place = lasting(origin.place)};
        n++;
    }
    for (int64_t k = 0; k < plan->ntasks; k++) {
        const stk_task *t = &plan->tasks[k];
        if (t->scratch_bytes <= 0) continue;
        if (out)
            out[n] = (stk_buffer_facts){.at = in_all_arenas(plan, t->scratch_arena, t->scratch_at),
                                        .bytes = t->scratch_bytes,
                                        .first = t->group,
                                        .last = t->group,
                                        .kind = STK_BUFFER_SCRATCH,
                                        .place = lasting(p->g->nodes[t->node].origin.place)};
        n++;
    }
    return n;
}

static void count_variables(const stk_program *p, stk_program_facts *out)
{
    for (int64_t k = 0; k < p->g->nnodes; k++) {
        const stk_node *n = &p->g->nodes[k];
        if (n->op != STK_OP_VARIABLE) continue;
        double bytes = (double)stk_type_bytes(stk_type_of(p->g, n->out));
        const char *place = n->origin.place ? n->origin.place : "";
        if (n->origin.part == STK_PART_UPDATE)
            out->optimizer_bytes += bytes;
        else if (!strcmp(place, "loss") || !strcmp(place, "metrics"))
            out->metric_bytes += bytes;
        else
            out->weight_bytes += bytes;
    }
}

static void count_inputs(const stk_program *p, stk_program_facts *out)
{
    for (int32_t i = 0; i < p->nfeeds; i++) {
        const stk_upload *u = p->feeds[i].upload;
        double bytes = (double)stk_type_bytes(&p->feeds[i].type);
        out->input_bytes += bytes;
        if (p->feeds[i].uniform_at >= 0) continue;
        if (stk_device_shares(p->device))
            out->in_place_bytes += bytes;
        else if (!u || p->slots[i].block != u->block[u->turn])
            out->resident_bytes += bytes;
        else if (u->held[u->turn])
            out->pinned_bytes += bytes;
        else
            out->staged_bytes += bytes;
    }
}

static stk_status visit_one(const stk_program *p,
                            void (*visit)(void *context, const stk_program_facts *facts),
                            void *context, stk_error *err)
{
    int64_t n = list_buffers(p, NULL);
    stk_launch_facts *launches = stk_calloc((size_t)p->plan.ntasks + 1, sizeof *launches);
    stk_buffer_facts *buffers = stk_calloc((size_t)n + 1, sizeof *buffers);
    stk_status status =
        launches && buffers ? STK_OK : stk_fail_memory(err, "facts about launches", 0);
    if (status == STK_OK) {
        stk_program_facts facts = {.serial = p->serial,
                                   .runs = p->step,
                                   .stats = p->stats,
                                   .launches = launches,
                                   .nlaunches = p->plan.ntasks,
                                   .islands = p->islands.rows,
                                   .nislands = p->islands.count,
                                   .buffers = buffers,
                                   .nbuffers = list_buffers(p, buffers)};
        describe(p, launches);
        count_variables(p, &facts);
        count_inputs(p, &facts);
        visit(context, &facts);
    }
    stk_free(launches);
    stk_free(buffers);
    return status;
}

stk_status stk_program_visit(void (*visit)(void *context, const stk_program_facts *facts),
                             void *context, stk_error *err)
{
    stk_status status = STK_OK;
    pthread_mutex_lock(&lock);
    for (const stk_program *p = first_program; p && status == STK_OK; p = p->next_program)
        status = visit_one(p, visit, context, err);
    pthread_mutex_unlock(&lock);
    return status;
}
