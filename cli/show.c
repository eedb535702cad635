/* show.c - one bar on a terminal, one line per epoch elsewhere, one object per epoch for machines. */
#include "show.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return 80;
}

static void draw(cli_show *show, const stk_progress *p)
{
    char text[2048];
    printf("\r%s\x1b[K", stk_progress_bar(p, columns(), show->ascii, text, sizeof text));
    fflush(stdout);
    show->open = true;
}

static stk_status progress(stk_callback *self, stk_trainer *t, const stk_progress *p,
                           stk_error *err)
{
    (void)t, (void)err;
    draw(self->context, p);
    return STK_OK;
}

static void print_object(const stk_progress *p)
{
    printf("{\"epoch\": %lld, \"seconds\": %.6f, \"samples\": %lld", (long long)p->epoch + 1,
           p->seconds, (long long)p->samples);
    for (int32_t i = 0; i < p->logs.count; i++) {
        printf(", ");
        cli_json_text(stdout, p->logs.names[i]);
        printf(": ");
        cli_json_number(stdout, p->logs.values[i]);
    }
    printf("}\n");
    fflush(stdout);
}

static stk_status epoch_end(stk_callback *self, stk_trainer *t, const stk_progress *p,
                            stk_error *err)
{
    cli_show *show = self->context;
    char text[2048];
    (void)t, (void)err;
    if (show->json) {
        print_object(p);
    } else if (show->bar) {
        draw(show, p);
        printf("\n");
        show->open = false;
    } else if (!show->quiet) {
        puts(stk_progress_epoch(p, text, sizeof text));
        fflush(stdout);
    }
    return STK_OK;
}

void cli_show_init(cli_show *show, const cli_args *args)
{
    const char *locale = getenv("LC_ALL") ? getenv("LC_ALL") : getenv("LANG") ? getenv("LANG") : "";
    const char *terminal = getenv("TERM") ? getenv("TERM") : "dumb";
    *show = (cli_show){.json = args->json, .quiet = args->quiet};
    show->bar =
        !args->json && !args->quiet && isatty(STDOUT_FILENO) && strcmp(terminal, "dumb") != 0;
    show->ascii = !strstr(locale, "UTF-8") && !strstr(locale, "utf8");
    show->callback = (stk_callback){.name = "show", .context = show, .epoch_end = epoch_end};
    if (show->bar) show->callback.progress = progress;
}

void cli_show_close(cli_show *show)
{
    if (show->open) printf("\n");
    show->open = false;
    fflush(stdout);
}

void cli_show_times(const stk_trainer *t)
{
    stk_train_times times;
    cli_table table = {.columns = 4, .right = 6};
    stk_trainer_times(t, &times);
    double known = 0, total = times.total > 0 ? times.total : 1;
    printf("where the time went: %lld steps, %lld samples, %.0f samples/s\n",
           (long long)times.steps, (long long)times.samples, (double)times.samples / total);
    for (int i = 0; i <= STK_SPAN_COUNT; i++) {
        double s = i < STK_SPAN_COUNT ? times.seconds[i] : times.total - known;
        known += s;
        if (s <= 0 && i < STK_SPAN_COUNT) continue;
        cli_cell(&table, "%s",
                 i < STK_SPAN_COUNT ? stk_span_name((stk_span_kind)i) + strlen("train.") : "other");
        cli_cell(&table, "%.3f s", s);
        cli_cell(&table, "%.1f %%", 100 * s / total);
        cli_cell(&table, "%.2f us/step", times.steps ? s * 1e6 / (double)times.steps : 0);
    }
    cli_table_print(&table, stdout, "  ");
    cli_table_free(&table);
}
