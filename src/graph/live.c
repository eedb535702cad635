/* live.c - the list of all living programs, so that a report can put names, work and traffic to the spans of a trace
 * without being handed every program that ran. Not used while programs run. */
#include "graph/program.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and the numbers */
static stk_program *first_live;
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
    p->next_live = first_live;
    first_live = p;
    pthread_mutex_unlock(&lock);
}

void stk_program_delist(stk_program *p)
{
    pthread_mutex_lock(&lock);
    stk_program **link = &first_live;
    while (*link && *link != p) link = &(*link)->next_live;
    if (*link) *link = p->next_live;
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

static void describe(const stk_program *p, stk_launch_facts *out)
{
    for (int64_t k = 0; k < p->nlaunches; k++) {
        const stk_launch *l = &p->launches[k];
        out[k] = (stk_launch_facts){
            .tag = l->tag,
            .label = l->label,
            .kernel = l->kernel < 0 ? "control" : stk_kernel_name((stk_kernel)l->kernel),
            .impl = l->impl ? l->impl->name : "-",
            .flops = l->flops,
            .bytes = l->bytes,
            .threads = l->threads,
            .parts = l->parts,
            .updates = l->kernel >= 0 && only_updates(p, &p->plan.tasks[k])};
    }
}

stk_status stk_program_visit(void (*visit)(void *context, const stk_program_facts *facts),
                             void *context, stk_error *err)
{
    stk_status status = STK_OK;
    pthread_mutex_lock(&lock);
    for (const stk_program *p = first_live; p && status == STK_OK; p = p->next_live) {
        stk_launch_facts *facts = stk_calloc((size_t)p->nlaunches, sizeof *facts);
        if (!facts) {
            status = stk_fail_memory(err, "facts about launches", 0);
            break;
        }
        describe(p, facts);
        double input_bytes = 0;
        for (int32_t i = 0; i < p->nfeeds; i++)
            input_bytes += (double)stk_type_bytes(&p->feeds[i].type);
        visit(context, &(stk_program_facts){.serial = p->serial,
                                            .input_bytes = input_bytes,
                                            .runs = p->step,
                                            .stats = p->stats,
                                            .launches = facts,
                                            .nlaunches = p->nlaunches});
        stk_free(facts);
    }
    pthread_mutex_unlock(&lock);
    return status;
}
