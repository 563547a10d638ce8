#include "tools/simulate/numbers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/complain.h"
#include "tools/options.h"
#include "tools/simulate/agenda.h"
#include "tools/simulate/numbers_inside.h"
#include "tools/simulate/plan_values.h"

#define LONGEST_US (1800 * AGENDA_S)

enum { OPTION_STRATEGY = 256, OPTION_CUT, OPTION_MARKDOWN, OPTION_PART, OPTION_RESUME, OPTION_LONGEST };
enum part { PART_KNOW = 1, PART_SLOW = 2, PART_CUT = 4, PART_MEMORY = 8, PARTS_ALL = 15 };

static const struct argp_option options[] = {
    {"brokers", 'b', "LIST", 0, "Numbers of brokers; 3,100,1000,10000 if not given", 0},
    {"loss", 'l', "LIST", 0, "Shares of datagrams that are lost; 0,5%,20%,40% if not given", 0},
    {"cut", OPTION_CUT, "LIST", 0, "How long halves are cut apart; 10s,10m,24h if not given", 0},
    {"strategy", OPTION_STRATEGY, "LIST", 0, "Protocols; hobnob,memberlist,memberlist-join if not given", 0},
    {"part", OPTION_PART, "LIST", 0,
     "Of: know (rows, crashes, bytes, joins), slow (false deaths), cut (healing), memory", 0},
    {"longest", OPTION_LONGEST, "TIME", 0,
     "A row that would take longer than this is not run, and says so; 30m if not given", 0},
    {"seed", 's', "N", 0, "Draw everything from this seed; 1 if not given", 1},
    {"markdown", OPTION_MARKDOWN, NULL, 0, "Print tables in Markdown, each row as soon as it is there", 1},
    {"resume", OPTION_RESUME, "FILE", 0,
     "Take the rows that this earlier output with --markdown has from there, and run the others", 1},
    {"quiet", 'q', NULL, 0, "Do not say on standard error what is being run", 1},
    {NULL, 0, NULL, 0, NULL, 0},
};

/* What the options say. */
struct asked {
    struct numbers_wanted wanted;
    const char *resume;
};

/* ---- options ---- */

static bool next_word(const char **list, char word[32]) {
    size_t size = strcspn(*list, ",");
    if (size == 0 || size >= 32) return false;
    memcpy(word, *list, size);
    word[size] = '\0';
    *list += size + ((*list)[size] == ',');
    return true;
}

static bool take_word(struct numbers_wanted *wanted, int key, const char *word) {
    static const char *const parts[] = {"know", "slow", "cut", "memory"};
    switch (key) {
    case 'b':
        return wanted->broker_count < NUMBERS_LIST_MAX &&
               plan_parse_count(word, PLAN_BROKERS_MAX, &wanted->brokers[wanted->broker_count]) &&
               wanted->brokers[wanted->broker_count++] >= 2;
    case 'l':
        return wanted->loss_count < NUMBERS_LIST_MAX && plan_parse_share(word, &wanted->losses[wanted->loss_count]) &&
               wanted->losses[wanted->loss_count++] < 1;
    case OPTION_CUT:
        return wanted->cut_count < NUMBERS_LIST_MAX && plan_parse_us(word, &wanted->cuts[wanted->cut_count]) &&
               wanted->cuts[wanted->cut_count++] > 0;
    case OPTION_STRATEGY:
        return wanted->strategy_count < NUMBERS_LIST_MAX &&
               (wanted->strategies[wanted->strategy_count++] = strategy_find(word)) != NULL;
    default:
        for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
            if (strcmp(word, parts[i]) != 0) continue;
            wanted->parts |= 1u << i;
            return true;
        }
        return false;
    }
}

static error_t take_list(struct numbers_wanted *wanted, int key, const char *name, const char *text,
                         const char *write) {
    char word[32];
    for (const char *rest = text; *rest != '\0';) {
        if (next_word(&rest, word) && take_word(wanted, key, word)) continue;
        complain_usage("--%s %s: is not understood; write %s", name, text, write);
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    struct asked *asked = state->input;
    struct numbers_wanted *wanted = &asked->wanted;
    switch (key) {
    case 'b': return take_list(wanted, key, "brokers", text, "numbers from 2, such as 3,100");
    case 'l': return take_list(wanted, key, "loss", text, "shares, such as 0,20%");
    case OPTION_CUT: return take_list(wanted, key, "cut", text, "times, such as 10s,10m");
    case OPTION_STRATEGY:
        return take_list(wanted, key, "strategy", text, "names of: hobnob,memberlist,memberlist-join");
    case OPTION_PART: return take_list(wanted, key, "part", text, "names of: know,slow,cut,memory");
    case 's':
        if (plan_parse_count(text, UINT64_MAX / 2, &wanted->seed)) return 0;
        complain_usage("--seed %s: is not understood; write a whole number", text);
        return EINVAL;
    case OPTION_LONGEST:
        if (plan_parse_us(text, &wanted->longest_us)) return 0;
        complain_usage("--longest %s: is not understood; write a time, such as 2h", text);
        return EINVAL;
    case OPTION_RESUME: asked->resume = text; return 0;
    case OPTION_MARKDOWN: wanted->markdown = true; return 0;
    case 'q': wanted->quiet = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void set_defaults(struct numbers_wanted *wanted) {
    if (wanted->broker_count == 0) take_list(wanted, 'b', "", "3,100,1000,10000", "");
    if (wanted->loss_count == 0) take_list(wanted, 'l', "", "0,5%,20%,40%", "");
    if (wanted->cut_count == 0) take_list(wanted, OPTION_CUT, "", "10s,10m,24h", "");
    if (wanted->strategy_count == 0) take_list(wanted, OPTION_STRATEGY, "", "hobnob,memberlist,memberlist-join", "");
    if (wanted->parts == 0) wanted->parts = PARTS_ALL;
    if (wanted->longest_us == 0) wanted->longest_us = LONGEST_US;
}

/* ---- tables ---- */

typedef bool row_of_loss(struct numbers_table *table, uint64_t brokers, double loss, const struct strategy *strategy);

static bool print_losses(struct numbers_table *table, row_of_loss *row) {
    const struct numbers_wanted *wanted = table->wanted;
    bool good = true;
    for (size_t n = 0; n < wanted->broker_count; n++)
        for (size_t l = 0; l < wanted->loss_count; l++)
            for (size_t s = 0; good && s < wanted->strategy_count; s++)
                good = row(table, wanted->brokers[n], wanted->losses[l], wanted->strategies[s]);
    return good;
}

static bool print_know(struct numbers_table *table) {
    static const char *const titles[] = {"brokers", "protocol",   "loss", "row 50 %", "99 %",
                                         "last",    "down 50 %",  "last", "idle B/s", "steady B/s",
                                         "join",    "join bytes", "wall", "CPU",      NULL};
    bool good = numbers_table_begin(
        table,
        "Time until a row is known to half of the brokers, to 99 %, to the last; until a crash is noticed; bytes that "
        "a broker sends in a second; a start with an empty disk until it agrees, and what it receives",
        titles);
    return numbers_table_end(table, good && print_losses(table, numbers_row_know));
}

static bool print_slow(struct numbers_table *table) {
    static const char *const titles[] = {"brokers",   "protocol", "loss", "none slow", "1 % slow",
                                         "20 % slow", "wall",     "CPU",  NULL};
    bool good = numbers_table_begin(
        table, "Healthy brokers called down in a broker-hour, while others see all input 2 s late", titles);
    return numbers_table_end(table, good && print_losses(table, numbers_row_slow));
}

static bool print_cut(struct numbers_table *table) {
    static const char *const titles[] = {"brokers", "protocol", "cut", "healed after", "wall", "CPU", NULL};
    const struct numbers_wanted *wanted = table->wanted;
    bool good = numbers_table_begin(table, "Two halves that were cut apart: time until all agree again", titles);
    for (size_t n = 0; n < wanted->broker_count; n++)
        for (size_t c = 0; c < wanted->cut_count; c++)
            for (size_t s = 0; good && s < wanted->strategy_count; s++)
                good = numbers_row_cut(table, wanted->brokers[n], wanted->cuts[c], wanted->strategies[s]);
    return numbers_table_end(table, good);
}

static bool print_memory(struct numbers_table *table) {
    static const char *const titles[] = {"brokers", "protocol", "loss", "bytes of a broker", "of a member", "of a row",
                                         "wall",    "CPU",      NULL};
    bool good = numbers_table_begin(table,
                                    "Memory of a broker alone in its process; of each further member; of each row, its "
                                    "share of the owner's included",
                                    titles);
    for (size_t n = 0; good && n < table->wanted->broker_count; n++)
        good = numbers_row_memory(table, table->wanted->brokers[n]);
    return numbers_table_end(table, good);
}

static bool print(const struct numbers_wanted *wanted, const struct numbers_earlier *earlier) {
    struct numbers_table table = {.wanted = wanted, .earlier = earlier};
    return (!(wanted->parts & PART_KNOW) || print_know(&table)) &&
           (!(wanted->parts & PART_SLOW) || print_slow(&table)) && (!(wanted->parts & PART_CUT) || print_cut(&table)) &&
           (!(wanted->parts & PART_MEMORY) || print_memory(&table));
}

int numbers_command(int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Prints how fast and for how many bytes rows, crashes and newcomers become known, how often healthy brokers "
        "are taken for dead, and how long healing takes: for Hobnob's own gossip core, and for memberlist's published "
        "rules "
        "on the same networks.\v"
        "Everything takes hours; a part, such as --brokers 3,100 --loss 0,20%, minutes. The same options and seed give "
        "the same figures, but for wall and CPU.\n\n"
        "What was stopped goes on with\n"
        "  hobnob simulate --numbers --markdown > first.md\n"
        "  hobnob simulate --numbers --markdown --resume first.md > second.md\n"
        "and several outputs may stand in that file, one behind the other.",
        NULL,
        NULL,
        NULL};
    struct asked asked = {.wanted.seed = 1};
    struct numbers_earlier earlier = {0};
    int code;
    if (!options_parse(&argp, argc, argv, &asked, &code)) return code;
    if (asked.resume && !asked.wanted.markdown) return complain_usage("--resume: needs --markdown");
    if (asked.resume && !numbers_earlier_read(&earlier, asked.resume)) {
        complain("%s: cannot be read: %s; write --resume with the path of an earlier output", asked.resume,
                 strerror(errno));
        numbers_earlier_free(&earlier);
        return EXIT_NO;
    }
    set_defaults(&asked.wanted);
    bool good = print(&asked.wanted, &earlier);
    numbers_earlier_free(&earlier);
    if (good) return EXIT_GOOD;
    complain("simulate: memory is short; stop other programs");
    return EXIT_NO;
}
