#include "daemon/reload.h"

#include "daemon/server.h"

static void tell_faults(const struct server *server, const struct config_faults *faults) {
    const char *file = server->config->file != NULL ? server->config->file : "hobnobd";
    char line[CONFIG_FAULT_LINE_MAX];
    for (size_t i = 0; i < faults->count; i++) {
        config_fault_format(&faults->items[i], file, line, sizeof(line));
        log_text(server->log, faults->items[i].warning ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR, "reload", "%s", line);
    }
}

/* Certificates are renewed often, and clients that are connected need not notice. */
static void reload_certificates(struct server *server) {
    struct config_faults faults = {0};
    if (server->config->tls.cert.path == NULL) return;
    tls_certificates_read(server->certificates, server->config, server_wall_ms() / 1000, &faults);
    tell_faults(server, &faults);
    if (faults.errors > 0)
        log_text(server->log, LOG_LEVEL_ERROR, "reload", "the certificates in use stay as they were");
    else
        log_text(server->log, LOG_LEVEL_INFO, "reload", "new TLS connections use the certificates as they are now");
}

/* The node borrows the policy, so the one before goes when it has the new one. */
static void take_policy(struct server *server, struct config *config) {
    struct policy *policy = config->federation.policy;
    config->federation.policy = NULL;
    const bool changed = node_set_policy(server->node, server_now_ms(server), policy);
    policy_free(server->policy);
    server->policy = policy;
    log_text(server->log, LOG_LEVEL_INFO, "reload",
             changed ? "other topics may cross to and from other brokers from now on"
                     : "which topics may cross to and from other brokers is as it was");
}

/* Only of a file without a fault: half of what an admin meant might let out what was to stay. */
static void reload_policy(struct server *server) {
    struct config_faults faults = {0};
    if (server->config->file == NULL) return;
    struct config *config = config_read(server->config->file, &faults);
    if (config != NULL && faults.errors == 0) {
        take_policy(server, config);
    } else {
        tell_faults(server, &faults);
        log_text(server->log, LOG_LEVEL_ERROR, "reload", "the topics that may cross stay as they were");
    }
    config_free(config);
}

void reload(struct server *server) {
    reload_certificates(server);
    reload_policy(server);
    log_text(server->log, LOG_LEVEL_INFO, "reload", "all else in the configuration needs a restart of hobnobd");
}
