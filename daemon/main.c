/* hobnobd: the broker of one site. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/check.h"
#include "daemon/listening.h"
#include "daemon/memory.h"
#include "daemon/nearest.h"
#include "daemon/server.h"

enum exit_status { EXIT_GOOD = 0, EXIT_NO = 1, EXIT_USAGE = 2 };

static const char usage[] = "usage: hobnobd [--check] [CONFIG.yaml]\n"
                            "\n"
                            "Runs an MQTT broker in the foreground and logs to standard error. SIGTERM and\n"
                            "SIGINT tell clients and the federation, and end it; SIGHUP reads the\n"
                            "certificates under tls anew, and which topics may cross to other brokers;\n"
                            "SIGUSR1 and SIGUSR2 put a line with the state into the log. Without\n"
                            "CONFIG.yaml: a single broker in memory, MQTT on 127.0.0.1:1883, admin on\n"
                            "127.0.0.1:9100.\n"
                            "\n"
                            "  --check         reads the configuration, the files it names and what data_dir\n"
                            "                  keeps, looks at the ports, and changes nothing; prints each\n"
                            "                  fault as file:line: what is wrong, and what to write; exit\n"
                            "                  status 0 if there is none but warnings, else 1. Run it as the\n"
                            "                  user that runs hobnobd\n"
                            "  -h, --help      prints this\n"
                            "  -V, --version   prints the version\n"
                            "\n"
                            "Exit status: 0 ended in order, 1 could not run, 2 wrong usage.\n";

struct arguments {
    bool check, help, version;
    const char *file;
};

static bool wrong_usage(const char *what, const char *argument, const char *hint) {
    fprintf(stderr, "hobnobd: %s %s; %s\n", what, argument,
            hint[0] != '\0' ? hint : "hobnobd --help shows what there is");
    return false;
}

static bool read_option(const char *option, struct arguments *arguments) {
    const char *const known[] = {"--check", "--help", "--version", "-h", "-V"};
    bool *const values[] = {&arguments->check, &arguments->help, &arguments->version, &arguments->help,
                            &arguments->version};
    const char *nearest = NULL;
    char hint[NEAREST_WORD_MAX + 32] = "";
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(option, known[i]) == 0) return *values[i] = true;
        if (known[i][1] == '-') nearest_try(option, known[i], &nearest);
    }
    if (nearest != NULL) snprintf(hint, sizeof(hint), "did you mean %s?", nearest);
    return wrong_usage("unknown option", option, hint);
}

static bool read_arguments(int count, char **texts, struct arguments *arguments) {
    for (int i = 1; i < count; i++) {
        if (texts[i][0] == '-') {
            if (!read_option(texts[i], arguments)) return false;
        } else if (arguments->file != NULL) {
            return wrong_usage("one configuration is enough, and there is also", texts[i], "");
        } else {
            arguments->file = texts[i];
        }
    }
    if (arguments->check && arguments->file == NULL)
        return wrong_usage("nothing to", "--check", "write hobnobd --check CONFIG.yaml");
    return true;
}

static void print_faults(FILE *out, const char *file, const struct config_faults *faults) {
    char line[CONFIG_FAULT_LINE_MAX];
    for (size_t i = 0; i < faults->count; i++) {
        config_fault_format(&faults->items[i], file, line, sizeof(line));
        fprintf(out, "%s\n", line);
    }
}

/* A socket or the database would get the number of one that is closed, and the log be written into it. */
static void open_standard_files(void) {
    for (int file = 0; file <= 2; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDWR) != file) return;
}

/* Nothing but SIGTERM and SIGINT ends it (and what asks for a core: SIGQUIT). To those that mean something to it
 * signals.c listens; SIGXFSZ is what a limit of file size (ulimit -f) sends, and then the write has failed, too. */
static void ignore_signals(void) {
    static const int signals[] = {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_IGN);
}

/* Each client is a descriptor, and the soft limit is often a historic 1,024. */
static void raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static bool say(const char *text) {
    if (fputs(text, stdout) >= 0 && fflush(stdout) == 0 && !ferror(stdout)) return true;
    fputs("hobnobd: standard output cannot be written: see what it leads to (a full disk, a closed pipe)\n", stderr);
    return false;
}

static int run(const struct config *config, const struct identity *identity, struct tls_certificates *certificates) {
    char error[SERVER_ERROR_MAX] = "";
    struct log *log = log_new(&(struct log_options){.level = config->log_level});
    char line[SERVER_ERROR_MAX + 16];
    raise_file_limit();
    memory_keep_freed();
    const bool good = log != NULL && server_run(config, identity, certificates, log, error);
    snprintf(line, sizeof(line), "hobnobd: %s\n", error[0] != '\0' ? error : "memory is short: give the machine more");
    if (!good && log != NULL) log_plain(log, line);
    if (log == NULL) fputs(line, stderr);
    log_free(log);
    return good ? EXIT_GOOD : EXIT_NO;
}

static int check_or_run(const struct arguments *arguments) {
    struct config_faults faults = {0};
    struct identity identity = {0};
    const char *file = arguments->file != NULL ? arguments->file : "hobnobd";
    struct config *config = arguments->file != NULL ? config_read(file, &faults) : config_default();
    struct tls_certificates *certificates = tls_certificates_new();
    int status = EXIT_NO;
    if (certificates == NULL) config_fault_add(&faults, false, 0, "memory is short; give the machine more");
    if (config != NULL && certificates != NULL) {
        tls_certificates_read(certificates, config, server_wall_ms() / 1000, &faults);
        identity_read(&identity, config, arguments->check, server_wall_ms() / 1000, &faults);
        listening_resolve(config, &faults);
        if (arguments->check) check_surroundings(config, &faults);
        config_faults_sort(&faults);
    }
    print_faults(arguments->check ? stdout : stderr, file, &faults);
    if (config != NULL && faults.errors == 0) {
        if (arguments->check) printf("%s: good\n", file);
        status = arguments->check ? EXIT_GOOD : run(config, &identity, certificates);
    }
    identity_deinit(&identity);
    tls_certificates_free(certificates);
    config_free(config);
    return status;
}

int main(int argc, char **argv) {
    struct arguments arguments = {0};
    open_standard_files();
    if (!read_arguments(argc, argv, &arguments)) return EXIT_USAGE;
    if (arguments.help) return say(usage) ? EXIT_GOOD : EXIT_NO;
    if (arguments.version) return say("hobnobd " HOBNOB_VERSION "\n") ? EXIT_GOOD : EXIT_NO;
    if (!arguments.check) ignore_signals();
    const int status = check_or_run(&arguments);
    return !arguments.check || say("") ? status : EXIT_NO;
}
