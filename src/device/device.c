/* device.c - which devices there are, and who has them open: kinds, names, counts. What a device can do is its own
 * business (device.h); here it is only found, shared and let go.
 *
 * Two handles to the same thing would be two pools that spin on the same cores, or two queues on one card. So whoever
 * asks for the same name and the same number of threads gets the same device. */
#include "device/device.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STK_DRIVER(kind) extern const stk_driver stk_driver_##kind;
#include "device/drivers.def"

static const stk_driver *const drivers[] = {
#define STK_DRIVER(kind) &stk_driver_##kind,
#include "device/drivers.def"
};
enum { DRIVERS = sizeof drivers / sizeof *drivers };

/* ---- names --------------------------------------------------------------------------------------------- */

int32_t stk_device_count(void)
{
    int32_t n = 0;
    for (int i = 0; i < DRIVERS; i++) n += drivers[i]->count();
    return n;
}

static const char *name_of(const stk_driver *driver, int32_t index, char *text, size_t size)
{
    snprintf(text, size, "%s:%d", driver->kind, index);
    return text;
}

/* "cpu:0" is driver cpu, index 0; "cpu" is its first. */
static const stk_driver *find(const char *name, int32_t *index)
{
    char text[64];
    for (int i = 0; i < DRIVERS; i++) {
        int32_t n = drivers[i]->count();
        for (*index = 0; *index < n; ++*index)
            if (!strcmp(name, name_of(drivers[i], *index, text, sizeof text)) ||
                (*index == 0 && !strcmp(name, drivers[i]->kind)))
                return drivers[i];
    }
    return NULL;
}

const char *stk_device_missing(void)
{
    for (int i = 0; i < DRIVERS; i++) {
        const char *text = drivers[i]->missing ? drivers[i]->missing() : "";
        if (*text) return text;
    }
    return "";
}

static stk_status fail_unknown(const char *name, stk_error *err)
{
    char known[512] = "", text[64];
    size_t used = 0;
    for (int i = 0; i < DRIVERS; i++)
        for (int32_t k = 0; k < drivers[i]->count() && used < sizeof known - 80; k++)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s\"%s\"",
                                     used ? ", " : "", name_of(drivers[i], k, text, sizeof text));
    const char *missing = stk_device_missing();
    return stk_fail(err, STK_ERR_DEVICE,
                    "no device \"%s\"; there is %s%s%s (`stoker devices` tells more)", name, known,
                    *missing ? "; " : "", missing);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static stk_device *open_devices;

static bool is_ours(const stk_device *d) { return stk_device_shares(d) || d->process == getpid(); }

static stk_status open_shared(const stk_driver *driver, int32_t index, int32_t threads,
                              stk_device **out, stk_error *err)
{
    char name[64];
    name_of(driver, index, name, sizeof name);
    pthread_mutex_lock(&lock);
    stk_status status = STK_OK;
    stk_device *d = open_devices;
    while (d && (strcmp(d->name, name) != 0 || d->asked != threads || !is_ours(d))) d = d->next;
    if (d) {
        *out = stk_device_retain(d);
    } else if ((status = driver->open(index, threads, out, err)) == STK_OK) {
        d = *out;
        snprintf(d->name, sizeof d->name, "%s", name);
        d->refs = 1;
        d->asked = threads;
        d->process = getpid();
        d->next = open_devices;
        open_devices = d;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

stk_status stk_device_open(const char *name, int32_t threads, stk_device **out, stk_error *err)
{
    if (!name || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "device_open: %s is NULL", name ? "out" : "name");
    *out = NULL;
    const char *wish = getenv("STOKER_DEVICE");
    int32_t index = 0;
    if (!strcmp(name, "default")) name = wish && *wish ? wish : "cpu:0";
    const stk_driver *driver = find(name, &index);
    return driver ? open_shared(driver, index, threads, out, err) : fail_unknown(name, err);
}

stk_status stk_device_usable(const stk_device *device, stk_error *err)
{
    if (is_ours(device)) return STK_OK;
    return stk_fail(
        err, STK_ERR_DEVICE,
        "%s was opened before this process was forked off, and its queues stayed with the "
        "parent; bring values to the host before the fork, or start the process anew "
        "(in Python: multiprocessing's \"spawn\")",
        device->name);
}

stk_device *stk_device_retain(stk_device *device)
{
    if (device) __atomic_add_fetch(&device->refs, 1, __ATOMIC_RELAXED);
    return device;
}

/* A device that can be found by name must vanish from the list before its last reference is gone, or
 * another thread might take it up again. */
void stk_device_release(stk_device *device)
{
    if (!device) return;
    pthread_mutex_lock(&lock);
    bool last = __atomic_sub_fetch(&device->refs, 1, __ATOMIC_ACQ_REL) == 0;
    for (stk_device **at = &open_devices; last && *at; at = &(*at)->next)
        if (*at == device) {
            *at = device->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (last) device->vt->release(device);
}

/* ---- what they are ------------------------------------------------------------------------------------- */

const char *stk_device_name(const stk_device *device) { return device ? device->name : ""; }

void stk_device_describe(stk_device *device, stk_device_report *out)
{
    if (!device || !out) return;
    memset(out, 0, sizeof *out);
    device->vt->describe(device, out);
    snprintf(out->name, sizeof out->name, "%s", device->name);
    out->shares_memory = device->caps.shares_memory;
    out->only_by_name = device->caps.only_by_name;
    out->largest = device->caps.largest_block;
    if (device->caps.memory) out->memory = device->caps.memory;
}

void stk_device_memory(stk_device *device, bool forget, int64_t *used, int64_t *peak)
{
    if (!device) return;
    if (used) *used = __atomic_load_n(&device->used, __ATOMIC_RELAXED);
    if (peak) *peak = __atomic_load_n(&device->peak, __ATOMIC_RELAXED);
    if (forget)
        __atomic_store_n(&device->peak, __atomic_load_n(&device->used, __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
}

/* ---- memory for pipelines ------------------------------------------------------------------------------ */

static void *take_host(void *device, size_t bytes)
{
    stk_device *d = device;
    return d->vt->memory.host_alloc(d, bytes);
}

static void give_host(void *device, void *memory, size_t bytes)
{
    stk_device *d = device;
    d->vt->memory.host_free(d, memory, bytes);
}

static void retain_context(void *device) { stk_device_retain(device); }
static void release_context(void *device) { stk_device_release(device); }

stk_memory_source stk_device_host_memory(stk_device *device)
{
    if (!device || stk_device_shares(device)) return (stk_memory_source){0};
    return (stk_memory_source){.alloc = take_host,
                               .free = give_host,
                               .retain = retain_context,
                               .release = release_context,
                               .context = device,
                               .device = device};
}

stk_status stk_device_list(int32_t room, stk_device_report *out, int32_t *n, stk_error *err)
{
    if (!n || room < 0 || (room && !out))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "device_list: give an array for the reports, its length, and a place for "
                        "their number");
    *n = 0;
    for (int i = 0; i < DRIVERS && *n < room; i++) /* counting a kind may wake its driver up */
        for (int32_t k = 0; *n < room && k < drivers[i]->count(); k++) {
            stk_device *device = NULL;
            stk_device_report *row = &out[(*n)++];
            stk_error why = {0};
            if (open_shared(drivers[i], k, 0, &device, &why) == STK_OK) {
                stk_device_describe(device, row);
                stk_device_release(device);
            } else {
                *row = (stk_device_report){.only_by_name = true};
                name_of(drivers[i], k, row->name, sizeof row->name);
                snprintf(row->trouble, sizeof row->trouble, "%.255s", why.message);
            }
        }
    return STK_OK;
}
