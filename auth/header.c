#include "auth/header.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "auth/reason.h"

/* RFC 7515 wants unknown members ignored. Those that differ from a known one in letter case only are a trick, not an
 * extension. */
static bool is_disguise(const char *name) {
    static const char *const known[] = {"alg", "typ", "crit"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(name, known[i]) == 0 && strcmp(name, known[i]) != 0) return true;
    return false;
}

static enum auth_result algorithm_check(const json_t *algorithm, char *reason) {
    if (!json_is_string(algorithm)) {
        auth_say(reason, "the token's header names no algorithm: mint one with hobnob token mint");
        return AUTH_MALFORMED;
    }
    const char *name = json_string_value(algorithm);
    if (strcmp(name, "ES256") == 0) return AUTH_OK;
    static const char *const known[] = {"none",  "HS256", "HS384", "HS512", "RS256", "RS384",
                                        "RS512", "ES384", "ES512", "PS256", "EdDSA"};
    const char *shown = "an unknown algorithm"; /* a stranger's text stays out of our logs */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(name, known[i]) == 0) shown = known[i];
    if (strcasecmp(name, "ES256") == 0) shown = "a misspelt ES256";
    auth_say(reason, "the token's header says %s, and only ES256 is believed: mint one with hobnob token mint", shown);
    return AUTH_REFUSED;
}

static enum auth_result members_check(json_t *header, char *reason) {
    const char *name;
    json_t *value;
    json_object_foreach(header, name, value) {
        if (is_disguise(name)) {
            auth_say(reason,
                     "the token's header has a member in the wrong letter case: mint one with hobnob token mint");
            return AUTH_REFUSED;
        }
    }
    if (json_object_get(header, "crit") != NULL) {
        auth_say(reason, "the token's header has a crit member, which names extensions not known here: mint one with "
                         "hobnob token mint");
        return AUTH_REFUSED;
    }
    const json_t *type = json_object_get(header, "typ");
    if (type != NULL && (!json_is_string(type) || strcasecmp(json_string_value(type), "JWT") != 0)) {
        auth_say(reason, "the token's header has a typ other than JWT: mint one with hobnob token mint");
        return AUTH_REFUSED;
    }
    return algorithm_check(json_object_get(header, "alg"), reason);
}

enum auth_result auth_header_check(const char *json, size_t size, char *reason) {
    json_error_t error;
    json_t *header = json_loadb(json, size, JSON_REJECT_DUPLICATES, &error);
    if (header == NULL) {
        enum json_error_code code = json_error_code(&error);
        if (code == json_error_out_of_memory) {
            auth_say(reason, "memory is short: try again");
            return AUTH_NO_MEMORY;
        }
        auth_say(reason, code == json_error_duplicate_key
                             ? "the token's header names a member twice: mint one with hobnob token mint"
                             : "the token's header is not JSON: mint one with hobnob token mint");
        return AUTH_MALFORMED;
    }
    enum auth_result result = AUTH_MALFORMED;
    if (json_is_object(header))
        result = members_check(header, reason);
    else
        auth_say(reason, "the token's header is not a JSON object: mint one with hobnob token mint");
    json_decref(header);
    return result;
}
