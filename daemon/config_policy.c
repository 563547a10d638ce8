/* Which topics may cross to other brokers and from them: federation.private_topics, export, import and peers. */
#include <string.h>

#include "broker/topic.h"
#include "daemon/config_values.h"

static const char *filter_fault(const char *text) {
    if (topic_is_shared(text, strlen(text)))
        return "names a shared subscription, and the filter behind its name is enough";
    if (!topic_filter_valid(text, strlen(text))) return "is no topic filter";
    return text[0] == '$' ? "begins with $, and such topics never leave a broker" : NULL;
}

static void read_filter(struct config_reader *reader, const struct config_key *key, const char *path,
                        const yaml_node_t *item) {
    const char *text = config_scalar(reader, key, path, item);
    const char *fault = text != NULL ? filter_fault(text) : NULL;
    if (fault != NULL)
        config_bad_value(reader, key, path, item, text, fault);
    else if (text != NULL && policy_list_add(reader->list, text, strlen(text)) != 0)
        reader->no_memory = true;
}

static void read_filters(struct config_reader *reader, const struct config_key *key, const char *path,
                         const yaml_node_t *value, enum policy_kind kind) {
    reader->list = policy_list(reader->config->federation.policy, reader->peer, kind);
    if (reader->list == NULL)
        reader->no_memory = true;
    else
        config_read_list(reader, key, path, value, CONFIG_FILTERS_MAX, read_filter);
}

void config_read_private_topics(struct config_reader *reader, const struct config_key *key, const char *path,
                                yaml_node_t *value) {
    read_filters(reader, key, path, value, POLICY_PRIVATE);
}

void config_read_export(struct config_reader *reader, const struct config_key *key, const char *path,
                        yaml_node_t *value) {
    read_filters(reader, key, path, value, POLICY_EXPORT);
}

void config_read_import(struct config_reader *reader, const struct config_key *key, const char *path,
                        yaml_node_t *value) {
    read_filters(reader, key, path, value, POLICY_IMPORT);
}

void config_read_peer(struct config_reader *reader, const struct config_key *key, const char *path,
                      yaml_node_t *value) {
    const char *name = (const char *)reader->name->data.scalar.value;
    const char *fault = name[0] == '\0' ? "is empty" : config_name_fault(name);
    if (fault != NULL) {
        config_bad_value(reader, key, "federation.peers", reader->name, name, fault);
        return;
    }
    if (++reader->peer_count > CONFIG_PEERS_MAX) {
        config_fault_add(reader->faults, false, config_line(reader->name),
                         "%s is one peer too many; write at most %u of them, and in federation.export and import what "
                         "counts for all others",
                         path, CONFIG_PEERS_MAX);
        return;
    }
    reader->peer = name;
    config_read_mapping(reader, key, path, value);
    reader->peer = "";
}
