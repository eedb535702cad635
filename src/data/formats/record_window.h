/* record_window.h - the unpacked bytes of a record file, as a window that slides forward.
 *
 * Plain files are mapped: the window is the file. Compressed ones are unpacked into a buffer that
 * grows to the largest stretch asked for; it grows only by bytes that really came, so a length read
 * from a damaged file costs nothing. */
#ifndef STK_DATA_RECORD_WINDOW_H
#define STK_DATA_RECORD_WINDOW_H

#include "base/map.h"
#include "stoker/records.h"

typedef struct stk_window {
    const char *name;
    stk_map map;         /* closed by stk_window_close when `mapped` */
    bool mapped, packed; /* packed: through zlib */
    const uint8_t *at;   /* the bytes at `offset` */
    size_t have;         /* how many there are */
    int64_t offset;      /* in unpacked bytes */
    /* private, packed only */
    void *inflater; /* z_stream */
    uint8_t *buffer;
    size_t begin, end, capacity;
    bool ended;
    char damage[160]; /* why the packed data ended early; "" when they did not */
} stk_window;

/* Over data, which are borrowed; window->map has to be set by the opener when it is a mapping. */
stk_status stk_window_open(stk_window *w, const char *name, stk_map map, bool mapped,
                           stk_compression compression, stk_error *err);
/* Tries to have `want` bytes at `offset`; have may still be less: that is the end. Fails only for
 * lack of memory. */
stk_status stk_window_fill(stk_window *w, size_t want, stk_error *err);
/* Forward by n <= have bytes. */
void stk_window_skip(stk_window *w, size_t n);
void stk_window_close(stk_window *w);

#endif
