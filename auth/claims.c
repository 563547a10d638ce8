#include "auth/claims.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "auth/reason.h"
#include "broker/topic.h"

#define NAME_MAX_BYTES 63u
#define STRING_MAX_BYTES 255u
#define TIME_MAX_S INT64_C(253402300799) /* the end of the year 9999 */

/* The lists inside the claim "claims". */
static const struct list {
    const char *name;
    size_t offset;
    bool names;  /* of brokers; else MQTT filters */
    bool allows; /* all else is refused */
} lists[] = {
    {"blocked_publish_topics", offsetof(struct auth_claims, blocked_publish_topics), false, false},
    {"blocked_subscribe_topics", offsetof(struct auth_claims, blocked_subscribe_topics), false, false},
    {"blocked_brokers", offsetof(struct auth_claims, blocked_brokers), true, false},
    {"allowed_publish_topics", offsetof(struct auth_claims, allowed_publish_topics), false, true},
    {"allowed_subscribe_topics", offsetof(struct auth_claims, allowed_subscribe_topics), false, true},
};
#define LIST_COUNT (sizeof lists / sizeof *lists)

bool auth_name_valid(const char *name, size_t size) {
    if (size == 0 || size > NAME_MAX_BYTES) return false;
    for (size_t i = 0; i < size; i++) {
        char letter = name[i];
        bool alphanumeric =
            (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
        /* A name is also a file name and an argument: no hidden file, no "..", no option. */
        if (!alphanumeric && (i == 0 || (letter != '.' && letter != '_' && letter != '-'))) return false;
    }
    return true;
}

static void filters_deinit(struct auth_filters *filters) {
    for (size_t i = 0; i < filters->count; i++)
        free(filters->items[i]);
    filters->count = 0;
}

void auth_claims_deinit(struct auth_claims *claims) {
    free(claims->issuer);
    free(claims->subject);
    free(claims->audience);
    free(claims->token_id);
    for (size_t i = 0; i < LIST_COUNT; i++)
        filters_deinit((struct auth_filters *)((char *)claims + lists[i].offset));
    memset(claims, 0, sizeof *claims);
}

/* ---- reading ---- */

static enum auth_result no_memory(char *reason) {
    auth_say(reason, "memory is short: try again");
    return AUTH_NO_MEMORY;
}

static enum auth_result copy_text(const char *text, size_t size, char **copy, char *reason) {
    char *made = malloc(size + 1);
    if (made == NULL) return no_memory(reason);
    memcpy(made, text, size);
    made[size] = '\0';
    *copy = made;
    return AUTH_OK;
}

static bool printable(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F) return false;
    return size > 0 && size <= STRING_MAX_BYTES;
}

static enum auth_result read_string(const json_t *object, const char *name, char **value, char *reason) {
    const json_t *member = json_object_get(object, name);
    if (!json_is_string(member) || !printable(json_string_value(member), json_string_length(member))) {
        auth_say(reason, "claim %s of the token is %s: mint one with hobnob token mint", name,
                 member == NULL ? "missing" : "not a text of 1 to 255 printable bytes");
        return AUTH_MALFORMED;
    }
    return copy_text(json_string_value(member), json_string_length(member), value, reason);
}

static enum auth_result read_time(const json_t *object, const char *name, bool required, int64_t *value, char *reason) {
    const json_t *member = json_object_get(object, name);
    if (member == NULL && !required) return AUTH_OK;
    if (!json_is_integer(member) || json_integer_value(member) < 0 || json_integer_value(member) > TIME_MAX_S) {
        auth_say(reason, "claim %s of the token is %s: mint one with hobnob token mint", name,
                 member == NULL ? "missing" : "not a whole number of seconds since 1970");
        return AUTH_MALFORMED;
    }
    *value = json_integer_value(member);
    return AUTH_OK;
}

static enum auth_result read_binding(const json_t *object, struct auth_claims *claims, char *reason) {
    const json_t *binding = json_object_get(object, "cnf");
    if (binding == NULL) return AUTH_OK;
    const json_t *thumbprint = json_object_get(binding, "jkt");
    if (!json_is_string(thumbprint) ||
        auth_base64url_decode(json_string_value(thumbprint), json_string_length(thumbprint), claims->key_thumbprint,
                              AUTH_THUMBPRINT_SIZE) != (long)AUTH_THUMBPRINT_SIZE) {
        auth_say(reason, "claim cnf of the token has no jkt with a key's thumbprint in base64url: mint one with hobnob "
                         "token mint --key");
        return AUTH_MALFORMED;
    }
    claims->key_bound = true;
    return AUTH_OK;
}

static enum auth_result read_list(const json_t *array, const struct list *list, struct auth_filters *filters,
                                  char *reason) {
    if (!json_is_array(array)) {
        auth_say(reason, "claim %s of the token is not a list: mint one with hobnob token mint", list->name);
        return AUTH_MALFORMED;
    }
    if (json_array_size(array) > AUTH_FILTERS_MAX) {
        auth_say(reason, "claim %s of the token has more than %u entries: merge some with wildcards", list->name,
                 AUTH_FILTERS_MAX);
        return AUTH_MALFORMED;
    }
    if (list->allows && json_array_size(array) == 0) {
        /* It would mean that nothing is allowed, and could be taken for no list at all. */
        auth_say(reason, "claim %s of the token is empty: leave it out, or block # instead", list->name);
        return AUTH_MALFORMED;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        const char *text = json_string_value(item);
        size_t size = json_string_length(item);
        if (!json_is_string(item) || (list->names ? !auth_name_valid(text, size) : !topic_filter_valid(text, size))) {
            auth_say(reason, "entry %zu of claim %s of the token is not %s: correct it", i + 1, list->name,
                     list->names ? "a broker's name" : "a valid MQTT filter");
            return AUTH_MALFORMED;
        }
        enum auth_result result = copy_text(text, size, &filters->items[filters->count], reason);
        if (result != AUTH_OK) return result;
        filters->count++;
    }
    return AUTH_OK;
}

static const struct list *find_list(const char *name) {
    for (size_t i = 0; i < LIST_COUNT; i++)
        if (strcmp(lists[i].name, name) == 0) return &lists[i];
    return NULL;
}

static enum auth_result read_lists(json_t *object, struct auth_claims *claims, char *reason) {
    json_t *inner = json_object_get(object, "claims");
    if (inner == NULL) return AUTH_OK;
    if (!json_is_object(inner)) {
        auth_say(reason, "claim claims of the token is not an object: mint one with hobnob token mint");
        return AUTH_MALFORMED;
    }
    const char *name;
    json_t *value;
    json_object_foreach(inner, name, value) {
        const struct list *list = find_list(name);
        if (list == NULL) {
            /* A restriction we do not understand must not be taken for none. */
            auth_say(
                reason,
                "the token's claims hold a restriction that is not known here: correct its spelling or update hobnobd");
            return AUTH_REFUSED;
        }
        enum auth_result result =
            read_list(value, list, (struct auth_filters *)((char *)claims + list->offset), reason);
        if (result != AUTH_OK) return result;
    }
    return AUTH_OK;
}

static enum auth_result consistent(const struct auth_claims *claims, char *reason) {
    if (strcmp(claims->audience, AUTH_AUDIENCE_BROKER) == 0 &&
        !auth_name_valid(claims->subject, strlen(claims->subject))) {
        auth_say(reason,
                 "a broker's name is 1 to %u letters, digits, dots, dashes and underscores, a letter or digit first: "
                 "choose another",
                 NAME_MAX_BYTES);
        return AUTH_MALFORMED;
    }
    if (claims->expires_at_s <= claims->issued_at_s || claims->expires_at_s <= claims->not_before_s) {
        auth_say(reason, "the token ends before it begins: mint one with a later expiry");
        return AUTH_MALFORMED;
    }
    return AUTH_OK;
}

static enum auth_result read_all(json_t *object, struct auth_claims *claims, char *reason) {
    enum auth_result result;
    if ((result = read_string(object, "iss", &claims->issuer, reason)) != AUTH_OK) return result;
    if ((result = read_string(object, "sub", &claims->subject, reason)) != AUTH_OK) return result;
    if ((result = read_string(object, "aud", &claims->audience, reason)) != AUTH_OK) return result;
    if ((result = read_string(object, "jti", &claims->token_id, reason)) != AUTH_OK) return result;
    if ((result = read_time(object, "iat", true, &claims->issued_at_s, reason)) != AUTH_OK) return result;
    if ((result = read_time(object, "nbf", false, &claims->not_before_s, reason)) != AUTH_OK) return result;
    if ((result = read_time(object, "exp", true, &claims->expires_at_s, reason)) != AUTH_OK) return result;
    if ((result = read_binding(object, claims, reason)) != AUTH_OK) return result;
    if ((result = read_lists(object, claims, reason)) != AUTH_OK) return result;
    return consistent(claims, reason);
}

enum auth_result auth_claims_parse(const char *json, size_t size, struct auth_claims *claims, char *reason) {
    json_error_t error;
    json_t *object = json_loadb(json, size, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) {
        enum json_error_code code = json_error_code(&error);
        if (code == json_error_out_of_memory) return no_memory(reason);
        auth_say(reason, code == json_error_duplicate_key
                             ? "the token names a claim twice: mint one with hobnob token mint"
                             : "the token's claims are not JSON: mint one with hobnob token mint");
        return AUTH_MALFORMED;
    }
    struct auth_claims read = {0};
    enum auth_result result = AUTH_MALFORMED;
    if (json_is_object(object))
        result = read_all(object, &read, reason);
    else
        auth_say(reason, "the token's claims are not a JSON object: mint one with hobnob token mint");
    json_decref(object);
    if (result == AUTH_OK)
        *claims = read;
    else
        auth_claims_deinit(&read);
    return result;
}

/* ---- writing ---- */

static bool put_list(json_t *inner, const char *name, const struct auth_filters *filters) {
    if (filters->count == 0) return true;
    json_t *array = json_array();
    if (json_object_set_new(inner, name, array) != 0) return false;
    for (size_t i = 0; i < filters->count; i++)
        if (json_array_append_new(array, json_string(filters->items[i])) != 0) return false;
    return true;
}

static bool put_lists(json_t *object, const struct auth_claims *claims) {
    json_t *inner = json_object();
    for (size_t i = 0; i < LIST_COUNT; i++) {
        if (put_list(inner, lists[i].name, (const struct auth_filters *)((const char *)claims + lists[i].offset)))
            continue;
        json_decref(inner);
        return false;
    }
    if (json_object_size(inner) > 0) return json_object_set_new(object, "claims", inner) == 0;
    json_decref(inner);
    return true;
}

static bool put_binding(json_t *object, const struct auth_claims *claims) {
    if (!claims->key_bound) return true;
    char thumbprint[44];
    auth_base64url_encode(claims->key_thumbprint, AUTH_THUMBPRINT_SIZE, thumbprint);
    return json_object_set_new(object, "cnf", json_pack("{s:s}", "jkt", thumbprint)) == 0;
}

enum auth_result auth_claims_print(const struct auth_claims *claims, const char *issuer, const char *token_id,
                                   char **json) {
    if (claims->subject == NULL || claims->audience == NULL) return AUTH_MALFORMED;
    for (size_t i = 0; i < LIST_COUNT; i++)
        if (((const struct auth_filters *)((const char *)claims + lists[i].offset))->count > AUTH_FILTERS_MAX)
            return AUTH_MALFORMED;
    json_t *object = json_object();
    /* json_string refuses what is not UTF-8, which json_object_set_new then passes on. */
    bool good =
        json_object_set_new(object, "iss", json_string(issuer)) == 0 &&
        json_object_set_new(object, "sub", json_string(claims->subject)) == 0 &&
        json_object_set_new(object, "aud", json_string(claims->audience)) == 0 &&
        json_object_set_new(object, "jti", json_string(token_id)) == 0 &&
        json_object_set_new(object, "iat", json_integer(claims->issued_at_s)) == 0 &&
        (claims->not_before_s == 0 || json_object_set_new(object, "nbf", json_integer(claims->not_before_s)) == 0) &&
        json_object_set_new(object, "exp", json_integer(claims->expires_at_s)) == 0 && put_binding(object, claims) &&
        put_lists(object, claims);
    *json = good ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(object);
    return *json != NULL ? AUTH_OK : good ? AUTH_NO_MEMORY : AUTH_MALFORMED;
}
