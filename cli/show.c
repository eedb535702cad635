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

/* The line that stays. On a narrow terminal the bar's text is cut, which would lose numbers for good: then it is the one
 * that goes into files, over as many lines as it needs. */
static void draw_last(cli_show *show, const stk_progress *p)
{
    char bar[2048], whole[2048];
    stk_progress_bar(p, columns(), show->ascii, bar, sizeof bar);
    stk_progress_epoch(p, whole, sizeof whole);
    const char *values = strstr(whole, " samples/s");
    size_t n = strlen(bar), m = values ? strlen(values) : 0;
    bool cut = n < m || strcmp(bar + n - m, values ? values : "") != 0;
    printf("\r%s\x1b[K\n", cut ? whole : bar);
    fflush(stdout);
    show->open = false;
}

/* Once each time it begins. */
static void tell_trouble(cli_show *show, const stk_progress *p)
{
    if (p->trouble && !show->troubled)
        fprintf(stderr, "%sstoker: %s; the training goes on, and it is tried again\n",
                show->open ? "\n" : "", p->trouble);
    show->troubled = p->trouble != NULL;
}

static stk_status progress(stk_callback *self, stk_trainer *t, const stk_progress *p,
                           stk_error *err)
{
    (void)t, (void)err;
    tell_trouble(self->context, p);
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
        draw_last(show, p);
    } else if (!show->quiet) {
        puts(stk_progress_epoch(p, text, sizeof text));
        fflush(stdout);
    }
    tell_trouble(show, p);
    return STK_OK;
}

bool cli_wants_bar(const cli_args *args, int file)
{
    const char *terminal = getenv("TERM") ? getenv("TERM") : "dumb";
    return !args->json && !args->quiet && isatty(file) && strcmp(terminal, "dumb") != 0;
}

void cli_show_init(cli_show *show, const cli_args *args)
{
    const char *locale = getenv("LC_ALL") ? getenv("LC_ALL") : getenv("LANG") ? getenv("LANG") : "";
    *show = (cli_show){.json = args->json, .quiet = args->quiet};
    show->bar = cli_wants_bar(args, STDOUT_FILENO);
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

/* ---- where the time went ------------------------------------------------------------------------------------- */

stk_watch *cli_books_open(const char *title)
{
    stk_watch_settings s = stk_watch_settings_defaults();
    stk_watch *watch = NULL;
    stk_error ignored;
    s.title = title;
    s.sample = 64; /* below one per cent of the shortest steps: make bench ROWS=watch_overhead */
    s.records = 16384;
    s.no_roofline = true;
    return stk_watch_start(&s, &watch, &ignored) == STK_OK ? watch : NULL;
}

stk_report *cli_books_close(stk_watch *watch)
{
    stk_report *report = NULL;
    stk_error ignored;
    if (!watch || stk_watch_stop(watch, &report, &ignored) != STK_OK) return NULL;
    return report;
}

static stk_budget budget_of(const stk_trainer *t, const stk_report *books)
{
    stk_train_times times;
    stk_budget budget;
    stk_trainer_times(t, &times);
    stk_budget_of(&times, books, &budget);
    return budget;
}

void cli_show_times(const cli_args *args, const stk_trainer *t, const stk_report *books, bool table)
{
    static const double LONG = 1, MOSTLY = 0.9; /* seconds; arithmetic that needs no word */
    stk_budget budget = budget_of(t, books);
    char line[256], *text = NULL;
    stk_error err;
    if (table) {
        if (stk_budget_text(&budget, books, &text, &err) == STK_OK) fputs(text, stdout);
        stk_text_free(text);
    } else if (!args->quiet && budget.total >= LONG && stk_budget_computing(&budget) < MOSTLY) {
        printf("time: %s; `stoker doctor", stk_budget_line(&budget, line, sizeof line));
        for (int i = 0; i < args->nrest; i++) printf(" %s", args->rest[i]);
        printf("` looks closer\n");
    }
}

void cli_json_times(FILE *out, const stk_trainer *t, const stk_report *books)
{
    stk_budget b = budget_of(t, books);
    fprintf(out, "{");
    for (int k = 0; k < STK_BOOK_COUNT; k++)
        fprintf(out, "\"%s\": %.6f, ", stk_book_name((stk_book)k), b.seconds[k]);
    fprintf(out, "\"build\": %.6f, \"validation\": %.6f, \"epoch ends\": %.6f, \"steps\": %.6f}",
            b.build, b.validation, b.epoch_ends, b.unsplit);
}
