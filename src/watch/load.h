/* load.h - what else this machine does. */
#ifndef STK_WATCH_LOAD_H
#define STK_WATCH_LOAD_H

typedef struct stk_load {
    double wall, all, own, stolen; /* seconds; the last three summed over processors */
} stk_load;

/* Counted since the machine (this process) was started; all zero where the system does not tell. */
stk_load stk_load_now(void);
/* Processors that others kept busy between two readings, what a hypervisor took away among them; 0 when not known. */
double stk_load_of_others(const stk_load *from, const stk_load *to);

#endif
